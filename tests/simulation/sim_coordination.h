#ifndef TESTS_SIMULATION_SIM_COORDINATION_H_
#define TESTS_SIMULATION_SIM_COORDINATION_H_

#include <cstdint>
#include <functional>
#include <map>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/parameter_link.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/coordinator/coordinator.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/ps_bugs.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_process.h"

namespace muster {

// One namespace's job on a start of ps task 0: production's Coordinator and who
// waits for it, called as CoordinationServer calls it.
class SimCoordination {
 public:
  struct Options {
    SimProcess* process = nullptr;
    SimNetwork* network = nullptr;
    Oracle* oracle = nullptr;
    PsBugs* bugs = nullptr;
    Bug bug = Bug::kNone;
    uint64_t incarnation = 0;
    CoordinatorOptions coordinator;
    // A task has said that it finishes.
    std::function<void()> on_finish;
    // The job is done, and every ps task knows it.
    std::function<void()> on_end;
  };

  explicit SimCoordination(Options options);

  const Coordinator& coordinator() const { return coordinator_; }
  // Since when the job is done.
  absl::Time done() const { return done_; }
  // When a Watch of this ps task came; InfiniteFuture if none has.
  absl::Time HeardOf(int ps_task) const;
  // It has heard that this chief could not save, and has waited as long for
  // another start of it as production promises before the job was done.
  bool KeptModelOf(uint64_t incarnation) const;

  absl::StatusOr<AssignTaskReply> Handle(const AssignTaskRequest& request);
  absl::StatusOr<RegisterReply> Handle(const RegisterRequest& request);
  absl::StatusOr<BeginEpochReply> Handle(const BeginEpochRequest& request);
  absl::StatusOr<CommitEpochReply> Handle(const CommitEpochRequest& request);
  absl::StatusOr<FinishReply> Handle(const FinishRequest& request);
  absl::StatusOr<RequestSaveReply> Handle(const RequestSaveRequest& request);
  absl::StatusOr<ReportSaveReply> Handle(const ReportSaveRequest& request);
  absl::StatusOr<PauseRoundsReply> Handle(const PauseRoundsRequest& request);
  absl::StatusOr<BeginCutReply> Handle(const BeginCutRequest& request);
  absl::StatusOr<ConfirmCutReply> Handle(const ConfirmCutRequest& request);
  absl::StatusOr<SteerReply> Handle(const SteerRequest& request) {
    return coordinator_.Steer(request, Now());
  }
  absl::StatusOr<BeginProfileReply> Handle(const BeginProfileRequest& request) {
    return coordinator_.BeginProfile(request, Now());
  }
  absl::StatusOr<AddProfileReply> Handle(const AddProfileRequest& request) {
    return coordinator_.AddProfile(request, Now());
  }
  absl::StatusOr<GetProfileReply> Handle(const GetProfileRequest& request) {
    return coordinator_.GetProfile(request, Now());
  }
  void Step(StepRequest request, ReplyCallback<StepReply> done);
  void Watch(const WatchRequest& request, ReplyCallback<JobState> done);

  // Lets the coordinator's time pass, answers who waits, tells of the end;
  // returns when it is to be called again.
  absl::Time Advance();

  // The process is gone: nothing happens any more.
  void Die();
  // As production's drain: whoever waits is told this state, or this error.
  void AnswerWatches();
  void Refuse(const absl::Status& why);

 private:
  absl::Time Now() const { return options_.process->Now(); }
  // Tells the oracle and the network of a start that has.
  void OnRegistered(const RegisterRequest& request);
  void AnswerDueWatches();
  void AnswerSteps();
  // Tells the oracle that the job has ended, or that it goes on after all.
  void SeeEnd();

  const Options options_;
  Coordinator coordinator_;
  bool alive_ = true;
  bool told_end_ = false;
  absl::Time done_ = absl::InfiniteFuture();
  std::map<int, absl::Time> heard_;
  // When chiefs said that they could not save, by incarnation.
  std::map<uint64_t, absl::Time> unsaved_;

  uint64_t next_call_ = 1;
  std::map<uint64_t, ReplyCallback<JobState>> watches_;
  std::map<uint64_t, ReplyCallback<StepReply>> steps_;
  std::map<uint64_t, Sender> step_senders_;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_COORDINATION_H_
