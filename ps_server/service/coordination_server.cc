#include "ps_server/service/coordination_server.h"

#include <algorithm>
#include <type_traits>
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
    if (options_.say) options_.say(line);
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
  if (!options_.awaited || !options_.say) return;
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
  if (!line.empty()) options_.say(line);
}

void CoordinationServer::AnswerWatches(absl::Time now) {
  for (WatchAnswer& answer : coordinator_.TakeAnswers(now)) {
    auto watch = watches_.extract(answer.watch_id);
    if (!watch.empty()) watch.mapped()(std::move(answer.state));
  }
}

template <typename Reply, typename Task>
void CoordinationServer::Submit(absl::Time deadline,
                                const ReplyCallback<Reply>& done,
                                const Task& call) {
  const bool posted = strand_.Post([this, deadline, done, call] {
    const absl::Time now = options_.clock->Now();
    if (now >= deadline) return done(TooLate());
    call(now);
  });
  if (!posted) done(ShuttingDown());
}

void CoordinationServer::ServeCalls() {
  Coordinator::VisitCalls([this](const auto& row, auto method) {
    using Row = std::decay_t<decltype(row)>;
    calls_.Handle(row, [this, method](const typename Row::Request& request,
                                      absl::Time deadline, const auto& done) {
      this->Submit(deadline, done,
                   [this, method, request, done](absl::Time now) {
                     done((coordinator_.*method)(request, now));
                   });
    });
  });
  calls_.Handle(
      kWatchCall, [this](const WatchRequest& request, absl::Time deadline,
                         const ReplyCallback<JobState>& done) {
        Submit(deadline, done, [this, request, deadline, done](absl::Time now) {
          StartWatch(request, deadline, now, done);
        });
      });
  calls_.Handle(
      kStepCall, [this](const StepRequest& request, absl::Time deadline,
                        const ReplyCallback<StepReply>& done) {
        Submit(deadline, done, [this, request, deadline, done](absl::Time now) {
          StartStep(request, deadline, now, done);
        });
      });
  calls_.Handle(
      kGetJobStateCall, [this](const JobStateRequest&, absl::Time deadline,
                               const ReplyCallback<JobState>& done) {
        Submit(deadline, done,
               [this, done](absl::Time) { done(coordinator_.State()); });
      });
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
