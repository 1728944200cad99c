#include "ps_server/service/coordination_server.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace muster {
namespace {

// A watch or step that waits is answered so long before its caller's deadline
// that the answer arrives in time.
constexpr absl::Duration kAnswerTime = absl::Milliseconds(200);

// How long a call that asks for `wait_ms` may wait, in milliseconds.
int32_t WaitMs(int32_t wait_ms, absl::Duration until_deadline,
               absl::Duration longest) {
  const absl::Duration limit =
      std::clamp(until_deadline - kAnswerTime, absl::ZeroDuration(), longest);
  return static_cast<int32_t>(
      std::min<int64_t>(wait_ms, absl::ToInt64Milliseconds(limit)));
}

absl::Status ShuttingDown() {
  return absl::UnavailableError("the coordinator on /job:ps/task:0 is ending");
}

absl::Status TooLate() {
  return absl::DeadlineExceededError(
      "the deadline passed before the coordinator got to it");
}

}  // namespace

CoordinationServer::CoordinationServer(Options options)
    : options_(std::move(options)),
      coordinator_(options_.coordinator),
      strand_([this] { return Advance(); }) {}

CoordinationServer::~CoordinationServer() { Close(); }

void CoordinationServer::Close() {
  // A refused post means that another Close was first.
  const bool first = strand_.Post([this] {
    for (const auto& [watch_id, done] : watches_) {
      coordinator_.CutWatch(watch_id);
    }
    coordinator_.CutSteps();
  });
  strand_.Close();
  if (!first) return;
  // Came after the cut.
  for (auto& [id, done] : std::exchange(watches_, {})) done(ShuttingDown());
  for (auto& [id, done] : std::exchange(steps_, {})) done(ShuttingDown());
}

absl::Duration CoordinationServer::Advance() {
  const absl::Time now = options_.clock->Now();
  coordinator_.Tick(now);
  AnswerWatches(now);
  AnswerSteps(now);
  for (const std::string& line : coordinator_.TakeLines()) {
    options_.reporter.Info(line);
  }
  if (coordinator_.phase() != told_phase_) {
    told_phase_ = coordinator_.phase();
    if (options_.on_phase_change) {
      options_.on_phase_change(coordinator_.State());
    }
  }
  if (!told_end_ && coordinator_.EndIsKnown()) {
    told_end_ = true;
    if (options_.on_end) options_.on_end();
  }
  SayWait(now);
  return std::min(coordinator_.NextDeadline(), waiting_.next_due()) - now;
}

void CoordinationServer::SayWait(absl::Time now) {
  if (!options_.awaited) return;
  // Steps do not raise the version; what matters then does.
  if (coordinator_.phase() == INITIAL ||
      coordinator_.state_version() != awaited_version_) {
    awaited_version_ = coordinator_.state_version();
    awaited_ = options_.awaited(coordinator_.State());
  }
  std::string line;
  if (!awaited_.empty()) {
    line = waiting_.WaitFor(awaited_, now);
  } else if (waiting_.Stop()) {
    line = "no longer waiting";
  }
  if (!line.empty()) options_.reporter.Info(line);
}

void CoordinationServer::AnswerWatches(absl::Time now) {
  for (WatchAnswer& answer : coordinator_.TakeAnswers(now)) {
    auto watch = watches_.extract(answer.watch_id);
    if (!watch.empty()) watch.mapped()(std::move(answer.state));
  }
}

template <typename Reply, typename Request>
void CoordinationServer::Submit(
    const Request& request, absl::Time deadline, ReplyCallback<Reply> done,
    absl::StatusOr<Reply> (Coordinator::*method)(const Request&, absl::Time)) {
  const bool posted = strand_.Post([this, request, deadline, done, method] {
    const absl::Time now = options_.clock->Now();
    if (now >= deadline) return done(TooLate());
    done((coordinator_.*method)(request, now));
  });
  if (!posted) done(ShuttingDown());
}

void CoordinationServer::Register(const RegisterRequest& request,
                                  absl::Time deadline,
                                  ReplyCallback<RegisterReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::Register);
}

void CoordinationServer::BeginEpoch(const BeginEpochRequest& request,
                                    absl::Time deadline,
                                    ReplyCallback<BeginEpochReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::BeginEpoch);
}

void CoordinationServer::CommitEpoch(const CommitEpochRequest& request,
                                     absl::Time deadline,
                                     ReplyCallback<CommitEpochReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::CommitEpoch);
}

void CoordinationServer::Step(const StepRequest& request, absl::Time deadline,
                              ReplyCallback<StepReply> done) {
  const bool posted = strand_.Post(
      [this, request, deadline, done] { StartStep(request, deadline, done); });
  if (!posted) done(ShuttingDown());
}

void CoordinationServer::StartStep(StepRequest request, absl::Time deadline,
                                   ReplyCallback<StepReply> done) {
  const absl::Time now = options_.clock->Now();
  if (now >= deadline) return done(TooLate());
  request.set_max_wait_ms(WaitMs(request.max_wait_ms(), deadline - now,
                                 options_.coordinator.max_watch));
  const uint64_t step_id = next_call_++;
  const absl::Status status = coordinator_.Step(request, step_id, now);
  if (!status.ok()) return done(status);
  steps_.emplace(step_id, std::move(done));
  AnswerSteps(now);
}

void CoordinationServer::AnswerSteps(absl::Time now) {
  for (StepAnswer& answer : coordinator_.TakeStepAnswers(now)) {
    auto step = steps_.extract(answer.step_id);
    if (!step.empty()) step.mapped()(std::move(answer.reply));
  }
}

void CoordinationServer::Finish(const FinishRequest& request,
                                absl::Time deadline,
                                ReplyCallback<FinishReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::Finish);
}

void CoordinationServer::ReportSave(const ReportSaveRequest& request,
                                    absl::Time deadline,
                                    ReplyCallback<ReportSaveReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::ReportSave);
}

void CoordinationServer::PauseRounds(const PauseRoundsRequest& request,
                                     absl::Time deadline,
                                     ReplyCallback<PauseRoundsReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::PauseRounds);
}

void CoordinationServer::RequestSave(const RequestSaveRequest& request,
                                     absl::Time deadline,
                                     ReplyCallback<RequestSaveReply> done) {
  Submit(request, deadline, std::move(done), &Coordinator::RequestSave);
}

void CoordinationServer::Watch(const WatchRequest& request, absl::Time deadline,
                               ReplyCallback<JobState> done) {
  const bool posted = strand_.Post(
      [this, request, deadline, done] { StartWatch(request, deadline, done); });
  if (!posted) done(ShuttingDown());
}

void CoordinationServer::StartWatch(WatchRequest request, absl::Time deadline,
                                    ReplyCallback<JobState> done) {
  const absl::Time now = options_.clock->Now();
  if (now >= deadline) return done(TooLate());
  request.set_max_wait_ms(WaitMs(request.max_wait_ms(), deadline - now,
                                 options_.coordinator.max_watch));
  const uint64_t watch_id = next_call_++;
  const absl::Status status = coordinator_.Watch(request, watch_id, now);
  if (!status.ok()) return done(status);
  watches_.emplace(watch_id, std::move(done));
  // Who need not wait gets the state of his turn, not of what came after him.
  AnswerWatches(now);
}

void CoordinationServer::GetJobState(absl::Time deadline,
                                     ReplyCallback<JobState> done) {
  const bool posted = strand_.Post([this, deadline, done] {
    if (options_.clock->Now() >= deadline) return done(TooLate());
    done(coordinator_.State());
  });
  if (!posted) done(ShuttingDown());
}

}  // namespace muster
