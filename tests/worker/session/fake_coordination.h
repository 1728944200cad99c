#ifndef TESTS_WORKER_SESSION_FAKE_COORDINATION_H_
#define TESTS_WORKER_SESSION_FAKE_COORDINATION_H_

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/call_table.h"
#include "common/rpc/link.h"
#include "common/rpc/served_calls.h"

namespace muster {

// A coordinator for one worker that grants `steps` steps and then stops the
// job, and leases their rows in order. Answers before the call returns, except
// a Watch without news, which waits for the next change.
class FakeCoordination : public Link {
 public:
  explicit FakeCoordination(int64_t steps) : steps_(steps) {
    state_.set_state_version(1);
    Serve(kRegisterCall, &FakeCoordination::Register);
    Serve(kWatchCall, &FakeCoordination::Watch);
    Serve(kBeginEpochCall, &FakeCoordination::BeginEpoch);
    Serve(kCommitEpochCall, &FakeCoordination::CommitEpoch);
    Serve(kStepCall, &FakeCoordination::Step);
    Serve(kFinishCall, &FakeCoordination::Finish);
    Serve(kReportSaveCall, &FakeCoordination::ReportSave);
    // The answer of an asynchronous job.
    calls_.Handle(kPauseRoundsCall, [](const PauseRoundsRequest&, absl::Time,
                                       const auto& done) {
      done(absl::FailedPreconditionError("the job has no rounds"));
    });
    calls_.Handle(kBeginCutCall, [this](const BeginCutRequest& request,
                                        absl::Time, const auto& done) {
      cut_calls_.push_back(
          absl::StrCat("BeginCut ", request.model_epoch(),
                       request.holds_steps() ? ", holds" : ""));
      if (!begin_failure.ok()) return done(begin_failure);
      BeginCutReply reply;
      *reply.mutable_state() = State();
      done(reply);
    });
    // Counts what every shard holds.
    calls_.Handle(kConfirmCutCall, [this](const ConfirmCutRequest& request,
                                          absl::Time, const auto& done) {
      cut_calls_.push_back(absl::StrCat("ConfirmCut ", request.model_epoch()));
      ConfirmCutReply reply;
      *reply.mutable_counted() = request.held();
      *reply.mutable_ledger() = ledger;
      if (!repeated_steps.empty()) {
        reply.set_repeated_steps(repeated_steps.front());
        repeated_steps.pop_front();
      }
      done(reply);
    });
  }

  void CallBytes(const AnyMethod& method, std::string request,
                 absl::Time deadline,
                 ReplyCallback<std::string> done) override {
    calls_.CallBytes(method, std::move(request), deadline, std::move(done));
  }

  JobState State() const {
    absl::MutexLock lock(&mu_);
    return state_;
  }
  // Non-zero step numbers and whether they were abandoned.
  std::vector<StepRequest> steps_reported() const {
    absl::MutexLock lock(&mu_);
    return steps_reported_;
  }
  FinishRequest finished() const {
    absl::MutexLock lock(&mu_);
    return finished_;
  }
  CommitEpochRequest committed() const {
    absl::MutexLock lock(&mu_);
    return committed_;
  }
  RegisterRequest registered() const {
    absl::MutexLock lock(&mu_);
    return registered_;
  }
  std::vector<ReportSaveRequest> saves_reported() const {
    absl::MutexLock lock(&mu_);
    return saves_reported_;
  }
  int watches() const {
    absl::MutexLock lock(&mu_);
    return watches_;
  }

  void SetRows(int64_t epoch_rows, int64_t done) {
    Change([&](JobState* state) {
      state->mutable_rows()->set_epoch_rows(epoch_rows);
      state->mutable_rows()->set_done(done);
      state->set_examples(done);
    });
  }
  void SetPhase(JobPhase phase) {
    if (State().phase() == phase) return;
    Change([phase](JobState* state) { state->set_phase(phase); });
  }
  void SetHighestIndex(int32_t index) {
    Change([index](JobState* state) { state->set_highest_index(index); });
  }
  // A ps that is about to end wants a save.
  void AskToSave() {
    Change([](JobState* state) { state->set_save_requests(1); });
  }
  // Ends a waiting Watch with this error.
  void FailWatch(const absl::Status& status) {
    ReplyCallback<JobState> done;
    {
      absl::MutexLock lock(&mu_);
      done = std::exchange(waiting_, nullptr);
    }
    if (done != nullptr) done(status);
  }

  // Of cuts and of rounds that are held.
  RowLedger ledger;
  absl::Status begin_failure;
  // Of the next cuts, as ConfirmCutReply's; 0 of those after.
  std::deque<int64_t> repeated_steps;
  // With their epochs.
  const std::vector<std::string>& cut_calls() const { return cut_calls_; }

  // Else grants come without rows, as from another kind of ps.
  bool leases_rows = true;

 protected:
  ServedCalls calls_;

 private:
  template <typename M>
  void Serve(const M& row, void (FakeCoordination::*method)(
                               const typename M::Request&,
                               ReplyCallback<typename M::Reply>)) {
    calls_.Handle(row, [this, method](const typename M::Request& request,
                                      absl::Time, auto done) {
      (this->*method)(request, std::move(done));
    });
  }

  // Tells a Watch that waits.
  void Change(absl::FunctionRef<void(JobState*)> change) {
    ReplyCallback<JobState> done;
    JobState state;
    {
      absl::MutexLock lock(&mu_);
      change(&state_);
      state_.set_state_version(state_.state_version() + 1);
      state = state_;
      done = std::exchange(waiting_, nullptr);
    }
    if (done != nullptr) done(state);
  }

  void Register(const RegisterRequest& request,
                ReplyCallback<RegisterReply> done) {
    RegisterReply reply;
    {
      absl::MutexLock lock(&mu_);
      registered_ = request;
      *reply.mutable_state() = state_;
    }
    done(reply);
  }

  void Watch(const WatchRequest& request, ReplyCallback<JobState> done) {
    JobState state;
    {
      absl::MutexLock lock(&mu_);
      ++watches_;
      if (request.state_version() == state_.state_version()) {
        waiting_ = std::move(done);
        return;
      }
      state = state_;
    }
    done(state);
  }

  void BeginEpoch(const BeginEpochRequest& request,
                  ReplyCallback<BeginEpochReply> done) {
    BeginEpochReply reply;
    reply.set_model_epoch(request.seen_epoch() + 1);
    done(reply);
  }

  void CommitEpoch(const CommitEpochRequest& request,
                   ReplyCallback<CommitEpochReply> done) {
    CommitEpochReply reply;
    {
      absl::MutexLock lock(&mu_);
      committed_ = request;
      state_.set_model_epoch(request.model_epoch());
      state_.set_fingerprint(request.fingerprint());
      state_.set_global_step(request.global_step());
      *state_.mutable_ps_incarnations() = request.ps_incarnations();
      *state_.mutable_evaluations() = request.evaluations();
      *state_.mutable_stop() = request.stop();
    }
    SetPhase(RUNNING);
    *reply.mutable_state() = State();
    done(reply);
  }

  void Step(const StepRequest& request, ReplyCallback<StepReply> done) {
    StepReply reply;
    bool stop = false;
    {
      absl::MutexLock lock(&mu_);
      steps_reported_.push_back(request);
      if (request.step() > 0 && !request.abandoned()) {
        state_.set_global_step(state_.global_step() + 1);
      }
      stop = state_.global_step() >= steps_;
      const int64_t first = state_.global_step() * request.step_rows();
      for (int i = 0; leases_rows && i <= request.leases_ahead(); ++i) {
        RowRange* const rows = reply.add_leases()->add_ranges();
        rows->set_first(first + i * request.step_rows());
        rows->set_rows(request.step_rows());
      }
      if (!request.stop_reason().empty()) {
        state_.set_stop_reason(request.stop_reason());
        stop = true;
      }
    }
    if (stop) SetPhase(STOPPING);
    const JobState state = State();
    reply.set_granted(!stop && !request.abandoned());
    reply.set_global_step(state.global_step());
    reply.set_phase(state.phase());
    reply.set_model_epoch(state.model_epoch());
    reply.set_state_version(state.state_version());
    done(reply);
  }

  void Finish(const FinishRequest& request, ReplyCallback<FinishReply> done) {
    {
      absl::MutexLock lock(&mu_);
      finished_ = request;
    }
    done(FinishReply());
  }

  void ReportSave(const ReportSaveRequest& request,
                  ReplyCallback<ReportSaveReply> done) {
    {
      absl::MutexLock lock(&mu_);
      saves_reported_.push_back(request);
    }
    done(ReportSaveReply());
  }

  const int64_t steps_;
  std::vector<std::string> cut_calls_;
  mutable absl::Mutex mu_;
  JobState state_ ABSL_GUARDED_BY(mu_);
  ReplyCallback<JobState> waiting_ ABSL_GUARDED_BY(mu_);
  std::vector<StepRequest> steps_reported_ ABSL_GUARDED_BY(mu_);
  FinishRequest finished_ ABSL_GUARDED_BY(mu_);
  CommitEpochRequest committed_ ABSL_GUARDED_BY(mu_);
  RegisterRequest registered_ ABSL_GUARDED_BY(mu_);
  std::vector<ReportSaveRequest> saves_reported_ ABSL_GUARDED_BY(mu_);
  int watches_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster

#endif  // TESTS_WORKER_SESSION_FAKE_COORDINATION_H_
