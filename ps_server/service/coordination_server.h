#ifndef PS_SERVER_SERVICE_COORDINATION_SERVER_H_
#define PS_SERVER_SERVICE_COORDINATION_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/base/wait_reporter.h"
#include "common/rpc/coordination_link.h"
#include "ps_server/coordinator/coordinator.h"
#include "ps_server/service/strand.h"

namespace muster {

// A Coordinator with the thread that owns it and lets its time pass. Behind
// the gRPC service on ps task 0, and called directly by a worker with
// --standalone.
//
// Thread-safe; callbacks run on its thread. A request whose deadline has
// passed before its turn is not carried out; a Watch or Step that waits is
// answered before its deadline. After Close every call answers Unavailable.
class CoordinationServer : public CoordinationLink {
 public:
  struct Options {
    CoordinatorOptions coordinator;
    // Outlives the server.
    const Clock* clock = nullptr;
    // Called on the server's thread when the phase has changed; must not
    // block.
    std::function<void(const JobState&)> on_phase_change;
    // A line for the operator (Coordinator::TakeLines, and for whom the job
    // waits).
    Reporter reporter;
    // Asked there, each second at least while the job is INITIAL, then when the
    // state has changed: for whom the job waits; "" for nobody. Null: for
    // nobody.
    std::function<std::string(const JobState&)> awaited;
    // The same, once, when the job is done and every ps task knows it.
    std::function<void()> on_end;
  };

  explicit CoordinationServer(Options options);
  ~CoordinationServer() override;

  void Register(const RegisterRequest& request, absl::Time deadline,
                ReplyCallback<RegisterReply> done) override;
  void Watch(const WatchRequest& request, absl::Time deadline,
             ReplyCallback<JobState> done) override;
  void BeginEpoch(const BeginEpochRequest& request, absl::Time deadline,
                  ReplyCallback<BeginEpochReply> done) override;
  void CommitEpoch(const CommitEpochRequest& request, absl::Time deadline,
                   ReplyCallback<CommitEpochReply> done) override;
  void Step(const StepRequest& request, absl::Time deadline,
            ReplyCallback<StepReply> done) override;
  void Finish(const FinishRequest& request, absl::Time deadline,
              ReplyCallback<FinishReply> done) override;
  void ReportSave(const ReportSaveRequest& request, absl::Time deadline,
                  ReplyCallback<ReportSaveReply> done) override;
  void PauseRounds(const PauseRoundsRequest& request, absl::Time deadline,
                   ReplyCallback<PauseRoundsReply> done) override;

  // For ps tasks alone.
  void RequestSave(const RequestSaveRequest& request, absl::Time deadline,
                   ReplyCallback<RequestSaveReply> done);
  // The answer to CoordinationService.GetJobState.
  void GetJobState(absl::Time deadline, ReplyCallback<JobState> done);

  // Answers every waiting Watch and Step, then refuses everything. Repeatable.
  void Close();

 private:
  // Runs `method` on the server's thread and gives its result to `done`.
  template <typename Reply, typename Request>
  void Submit(const Request& request, absl::Time deadline,
              ReplyCallback<Reply> done,
              absl::StatusOr<Reply> (Coordinator::*method)(const Request&,
                                                           absl::Time));
  void StartWatch(WatchRequest request, absl::Time deadline,
                  ReplyCallback<JobState> done);
  void StartStep(StepRequest request, absl::Time deadline,
                 ReplyCallback<StepReply> done);
  void AnswerWatches(absl::Time now);
  void AnswerSteps(absl::Time now);
  // Says, when it is due, for whom the job waits.
  void SayWait(absl::Time now);
  // Lets time pass, answers who waits, tells the phase; returns how long it may
  // be left alone.
  absl::Duration Advance();

  const Options options_;
  // Used on the strand's thread only, until it is closed.
  Coordinator coordinator_;
  std::map<uint64_t, ReplyCallback<JobState>> watches_;
  std::map<uint64_t, ReplyCallback<StepReply>> steps_;
  uint64_t next_call_ = 1;
  JobPhase told_phase_ = INITIAL;
  bool told_end_ = false;
  // The words of options_.awaited for the state of this version.
  std::string awaited_;
  int64_t awaited_version_ = 0;
  WaitReporter waiting_;
  // Last: its thread uses all of the above.
  Strand strand_;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_COORDINATION_SERVER_H_
