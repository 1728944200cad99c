#include "worker/session/session_core.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/cluster/task_id.h"
#include "common/rpc/error_reason.h"
#include "worker/client/call_status.h"
#include "worker/client/failing_time.h"
#include "worker/session/chief_machine.h"

namespace muster {
namespace {

// After so long without a failure the pauses before another try begin anew.
constexpr absl::Duration kCalm = absl::Seconds(5);

// The rows of an update, if they are others than those that were said, or to be
// expected, before; "" if not.
std::string DescribeNewUpdate(const JobState& state, int64_t* workers) {
  const UpdateSize& update = state.update();
  const int64_t before = *workers == 0 ? update.full_workers() : *workers;
  *workers = update.workers();
  if (*workers == before || state.phase() != RUNNING) return "";
  const std::string of_all = update.total_workers() > 0
                                 ? absl::StrCat(" of ", update.total_workers())
                                 : "";
  return absl::StrCat("an update has ", update.rows(), " rows, of ", *workers,
                      of_all,
                      *workers == 1 && of_all.empty() ? " worker" : " workers");
}

EndMachine::Options EndOptions(const SessionCore::Options& options) {
  EndMachine::Options end;
  end.self = options.self;
  end.chief = options.chief;
  end.chief_task = options.chief_task;
  end.goal = options.goal;
  end.saves = options.saves;
  end.saved_step = options.saved_step;
  end.finished = options.finished;
  end.listed_workers = options.listed_workers;
  end.standalone = options.ps_addresses[0].empty();
  return end;
}

}  // namespace

SessionCore::SessionCore(const Options& options)
    : options_(options),
      peers_(options.ps_addresses),
      end_(EndOptions(options)) {}

std::string SessionCore::first_ps() const {
  return PsName(0, options_.ps_addresses[0]);
}

absl::Time SessionCore::next_wakeup() const {
  return SoonestAfter(
      now_, {peers_.next_due(), retry_at_, end_.drain_until(),
             waiting_.next_due(), waiting_.since() + options_.max_wait,
             waiting_.since() + end_.PatienceForPs(state_)});
}

// ---- An event -----------------------------------------------------------

void SessionCore::BeginEvent(absl::Time now) {
  now_ = now;
  actions_.clear();
}

// ---- Actions ------------------------------------------------------------

void SessionCore::Do(SessionAction action) {
  if (!exited_) actions_.push_back(std::move(action));
}

void SessionCore::DoAlone(SessionAction action) {
  busy_ = true;
  Do(std::move(action));
}

void SessionCore::SayLine(std::string text, bool is_error) {
  Do(Say{std::move(text), is_error});
}

void SessionCore::GreetDuePeers() {
  for (const int ps_task : peers_.TakeDue(now_)) {
    Do(SendHello{ps_task, peers_.takeover(ps_task)});
  }
}

void SessionCore::Fail(Exit exit) {
  if (registered_with_ == 0) return ExitWith(std::move(exit));
  failures_ = 0;
  DoAlone(end_.FinishFailed(std::move(exit)));
}

void SessionCore::ExitWith(Exit exit) {
  Do(std::move(exit));
  exited_ = true;
}

void SessionCore::SayBeforeExit(std::string text) {
  if (text.empty() || std::get<Exit>(actions_.back()).code == kExitDone) return;
  actions_.insert(actions_.end() - 1, Say{std::move(text), /*is_error=*/true});
}

// ---- The job ------------------------------------------------------------

void SessionCore::AdoptState(const JobState& state) {
  if (state.state_version() >= state_.state_version()) state_ = state;
  SayNews();
}

bool SessionCore::HasUsableEpoch() const {
  return EpochIsUsable(state_, peers_.replies());
}

void SessionCore::OnRegistered(const JobState& state) {
  registered_with_ = peers_.replies()[0].ps_incarnation();
  state_ = state;
  end_.OnRegistered(state_);
  SayNews();
  OnProgress();
}

void SessionCore::SayNews() {
  std::string line = end_.SayFinishedBefore(state_);
  if (!line.empty()) SayLine(std::move(line));
  line = DescribeNewUpdate(state_, &update_workers_);
  if (options_.chief && !line.empty()) SayLine(std::move(line));
}

// ---- Lost peers ---------------------------------------------------------

void SessionCore::Reconnect(const absl::Status& why) {
  if (end_.is_leaving()) return;
  reconnects_ = true;
  peers_.ResetAll();
  if (IsFenced(why) && !IsReplaced(why)) {
    // A coordinator that does not know us: it is a new one.
    registered_with_ = 0;
  }
  reconnect_cause_ = std::string(why.message());
  // The wait began with the loss; half of the limit is left to ask who is
  // there.
  if (const absl::Duration failing = FailingTime(why);
      failing > absl::ZeroDuration()) {
    waiting_.TakeOver(now_ - std::min(failing, options_.max_wait / 2), now_);
  }
  RetryLater();
}

void SessionCore::ReconnectOrYield(const absl::Status& why) {
  if (end_.is_leaving()) return;
  if (IsReplaced(why)) {
    return ExitWith(ExitOfRefusal(why));
  }
  if (!absl::IsInvalidArgument(why)) return Reconnect(why);
  if (busy_) {
    return ExitWith(
        {UnlessDamaged(why, kExitBadConfig), std::string(why.message())});
  }
  FailRefused(why);
}

// This task asks for something wrong, and would the next time.
void SessionCore::FailRefused(const absl::Status& why) {
  Fail({UnlessDamaged(why, kExitBadConfig),
        absl::StrCat(first_ps(), " refused: ", why.message())});
}

// ---- Waits and pauses ---------------------------------------------------

void SessionCore::WaitFor(WaitReporter* waiting, const std::string& what) {
  std::string line = waiting->WaitFor(what, now_);
  // At the end of the job ps task 0 knows for whom to wait, but for a chief
  // that is lost.
  const bool is_end = state_.phase() == STOPPING && registered_with_ != 0 &&
                      peers_.AllGreeted() &&
                      MaySave(state_, options_.chief_task);
  const bool limited = !is_end && !end_.is_signalled();
  if (limited && now_ - waiting->since() >= options_.max_wait) {
    return ExitWith(
        {kExitRetryable,
         absl::StrCat("gave up after waiting ",
                      absl::FormatDuration(options_.max_wait), " for ", what)});
  }
  if (!line.empty()) SayLine(std::move(line));
}

void SessionCore::WaitSince(absl::Time since, WaitReporter* waiting,
                            const std::string& what) {
  if (waiting->since() == absl::InfiniteFuture()) waiting->WaitFor(what, since);
  WaitFor(waiting, what);
}

void SessionCore::StopWaiting(WaitReporter* waiting) {
  if (waiting->Stop()) SayLine("no longer waiting");
}

void SessionCore::OnProgress() {
  if (now_ >= retry_at_ + kCalm) failures_ = 0;
}

void SessionCore::RetryLater() {
  retry_at_ = now_ + RetryPause(failures_);
  ++failures_;
}

void SessionCore::PauseFor(absl::Duration pause) {
  failures_ = 0;
  retry_at_ = now_ + pause;
}

// ---- For all states -----------------------------------------------------

absl::Time SoonestAfter(absl::Time now, std::initializer_list<absl::Time> due) {
  absl::Time soonest = absl::InfiniteFuture();
  for (const absl::Time time : due) {
    if (time > now) soonest = std::min(soonest, time);
  }
  return soonest;
}

int UnlessDamaged(const absl::Status& status, int otherwise) {
  return IsDamaged(status) ? kExitRetryable : otherwise;
}

Exit ExitOfRefusal(const absl::Status& status, std::string text) {
  if (text.empty()) text = std::string(status.message());
  if (IsReplaced(status)) return ExitOfReplaced(std::move(text));
  const bool insecure = status.code() == absl::StatusCode::kUnauthenticated ||
                        status.code() == absl::StatusCode::kPermissionDenied;
  const int code = insecure ? kExitInsecure : kExitBadConfig;
  return {UnlessDamaged(status, code), std::move(text)};
}

std::string TaskNames(const std::vector<TaskId>& tasks) {
  return absl::StrJoin(tasks, ", ", [](std::string* out, const TaskId& task) {
    absl::StrAppend(out, TaskName(task));
  });
}

}  // namespace muster
