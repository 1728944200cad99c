#ifndef TESTS_SIMULATION_SIM_PS_H_
#define TESTS_SIMULATION_SIM_PS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/parameter_link.h"
#include "common/rpc/served_calls.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/coordinator/coordinator.h"
#include "ps_server/service/save_wait.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/simulation/bug.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/ps_bugs.h"
#include "tests/simulation/shard_audit.h"
#include "tests/simulation/sim_caller.h"
#include "tests/simulation/sim_model.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/simulator.h"

namespace muster {

// One start of a ps task: production's ParameterShard and, on task 0,
// Coordinator, called as ps_server/shard_server and coordination_server call
// them. Other tasks watch task 0 and end with the job, as JobWatcher does.
// Lives as long as the simulation; what comes after Die has no effect.
class SimPs {
 public:
  struct Options {
    Simulator* simulator = nullptr;
    SimNetwork* network = nullptr;
    Oracle* oracle = nullptr;
    int task = 0;
    uint64_t incarnation = 0;
    int num_workers = 0;
    Bug bug = Bug::kNone;
    // It has ended after a signal, with code 143.
    std::function<void(SimPs*)> on_exit;
  };

  explicit SimPs(const Options& options);

  // Serves from here on.
  void Start();
  // kill -9.
  void Die();
  // SIGTERM: has the chief save, as PsTask and SaveAsker do, and leaves.
  void Terminate();
  bool alive() const { return alive_; }
  // It has ended by itself, with code 0: the job is done.
  bool ended() const { return ended_; }
  int task() const { return options_.task; }
  // As its peers see it.
  uint64_t incarnation() const { return bugs_.ShownIncarnation(); }
  SimCaller& caller() { return caller_; }
  SimProcess& process() { return process_; }
  // Task 0 has waited as long for this other ps task to learn of the end as
  // production promises.
  bool WaitedFor(int task) const;
  // Task 0 has heard that this chief could not save, and has waited as long for
  // another start of it as production promises before the job was done.
  bool KeptModelOf(uint64_t incarnation) const;
  // REQUIRES: task 0.
  const Coordinator& coordinator() const { return *coordinator_; }
  ShardState State() const { return shard_.State(); }

  // The parameters of a READY shard, those of these slices; null if it is not
  // READY.
  std::optional<TensorValues> Values(const std::vector<TensorSlice>& slices) {
    return AuditShard(&shard_, options_.incarnation, slices);
  }

  // The calls without tensors, as they come from a network; those of
  // CoordinationService at task 0 only.
  ServedCalls& calls() { return calls_; }

  absl::StatusOr<HelloReply> Handle(HelloRequest request);
  absl::StatusOr<DefineReply> Handle(DefineRequest request);
  absl::StatusOr<LoadReply> Handle(Frame<LoadPart> request);
  absl::StatusOr<SealReply> Handle(SealRequest request);
  absl::StatusOr<Frame<PullReply>> Handle(PullRequest request);
  absl::StatusOr<Frame<PushReply>> Handle(Frame<PushPart> request);
  absl::StatusOr<BeginSnapshotReply> Handle(BeginSnapshotRequest request);
  absl::StatusOr<Frame<SnapshotPart>> Handle(ReadSnapshotRequest request);
  absl::StatusOr<EndSnapshotReply> Handle(EndSnapshotRequest request);

  absl::StatusOr<RegisterReply> Handle(const RegisterRequest& request);
  absl::StatusOr<BeginEpochReply> Handle(const BeginEpochRequest& request);
  absl::StatusOr<CommitEpochReply> Handle(const CommitEpochRequest& request);
  absl::StatusOr<FinishReply> Handle(const FinishRequest& request);
  absl::StatusOr<RequestSaveReply> Handle(const RequestSaveRequest& request);
  absl::StatusOr<PauseRoundsReply> Handle(const PauseRoundsRequest& request);
  void Step(StepRequest request, ReplyCallback<StepReply> done);
  void Watch(const WatchRequest& request, ReplyCallback<JobState> done);

 private:
  absl::Time Now() const { return options_.simulator->Now(); }
  void ServeShard();
  void ServeCoordinator();
  // Lets the coordinator's time pass, answers who waits, ends with the job.
  void Advance();
  void End();
  // Watches task 0.
  void WatchJob();
  void ConfirmEnd(int64_t version, int attempt);
  WatchRequest MakeWatch(int64_t version, absl::Duration wait) const;
  template <typename Reply, typename Request, typename Serve>
  void CallFirst(const Request& request, absl::Time deadline,
                 ReplyCallback<Reply> done, Serve serve);
  void WatchForSave();
  void OnVerdict(SaveWait::Verdict verdict);
  void Drain(bool saved);

  const Options options_;
  ServedCalls calls_;
  SimProcess process_;
  SimCaller caller_;
  ParameterShard shard_;
  PsBugs bugs_;
  // The shard's; it says so again where it keeps an old model.
  DefineReply last_define_;
  std::unique_ptr<Coordinator> coordinator_;
  bool alive_ = false;
  bool ended_ = false;
  bool ending_ = false;
  // Of task 0: since when the job is done, when it left, and when it heard of
  // each other ps task.
  absl::Time done_ = absl::InfiniteFuture();
  absl::Time left_ = absl::InfiniteFuture();
  // After a signal it waits only so long for the others to learn of the end.
  bool gave_up_ = false;
  std::map<int, absl::Time> heard_;
  // When chiefs said that they could not save, by incarnation.
  std::map<uint64_t, absl::Time> unsaved_;
  // After a signal.
  std::optional<SaveWait> save_wait_;
  int64_t save_version_ = 0;

  uint64_t next_call_ = 1;
  std::map<uint64_t, ReplyCallback<JobState>> watches_;
  std::map<uint64_t, ReplyCallback<StepReply>> steps_;
  std::map<uint64_t, Sender> step_senders_;
  absl::Time next_tick_ = absl::InfiniteFuture();
  int64_t watched_version_ = 0;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_SIM_PS_H_
