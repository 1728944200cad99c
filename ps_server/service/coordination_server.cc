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

// The namespace that a request means: its sender's, or its own.
template <typename Request>
auto NamespaceOf(const Request& request, int)
    -> decltype(request.sender().namespace_()) {
  return request.sender().namespace_();
}
template <typename Request>
auto NamespaceOf(const Request& request, char)
    -> decltype(request.namespace_()) {
  return request.namespace_();
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
      coordinators_(options_.coordinator),
      coordinator_(coordinators_.default_value()),
      strand_([this] { return Advance(); }) {
  ServeCalls();
}

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

template <typename M, typename Answer>
void CoordinationServer::Serve(const M& row, const Answer& answer) {
  calls_.Handle(
      row, [this, path = row.path, answer](
               const typename M::Request& request, absl::Time deadline,
               const ReplyCallback<typename M::Reply>& done) {
        const bool posted =
            strand_.Post([this, path, answer, request, deadline, done] {
              const absl::Time now = options_.clock->Now();
              if (now >= deadline) return done(TooLate());
              const absl::Status known =
                  coordinators_.Find(path, NamespaceOf(request, 0)).status();
              if (!known.ok()) return done(known);
              answer(request, deadline, now, done);
            });
        if (!posted) done(ShuttingDown());
      });
}

void CoordinationServer::ServeCalls() {
  Coordinator::VisitCalls([this](const auto& row, auto method) {
    this->Serve(row, [this, method](const auto& request, absl::Time,
                                    absl::Time now, const auto& done) {
      done((coordinator_.*method)(request, now));
    });
  });
  Serve(kWatchCall,
        [this](const WatchRequest& request, absl::Time deadline, absl::Time now,
               const auto& done) { StartWatch(request, deadline, now, done); });
  Serve(kStepCall,
        [this](const StepRequest& request, absl::Time deadline, absl::Time now,
               const auto& done) { StartStep(request, deadline, now, done); });
  Serve(kGetJobStateCall,
        [this](const JobStateRequest&, absl::Time, absl::Time,
               const auto& done) { done(coordinator_.State()); });
}

void CoordinationServer::StartStep(StepRequest request, absl::Time deadline,
                                   absl::Time now,
                                   ReplyCallback<StepReply> done) {
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

void CoordinationServer::StartWatch(WatchRequest request, absl::Time deadline,
                                    absl::Time now,
                                    ReplyCallback<JobState> done) {
  request.set_max_wait_ms(WaitMs(request.max_wait_ms(), deadline - now,
                                 options_.coordinator.max_watch));
  const uint64_t watch_id = next_call_++;
  const absl::Status status = coordinator_.Watch(request, watch_id, now);
  if (!status.ok()) return done(status);
  watches_.emplace(watch_id, std::move(done));
  // Who need not wait gets the state of his turn, not of what came after him.
  AnswerWatches(now);
}

}  // namespace muster
