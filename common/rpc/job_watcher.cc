#include "common/rpc/job_watcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/process/exit_code.h"
#include "common/rpc/connection_cause.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status_conversion.h"

namespace muster {
namespace {

constexpr absl::Duration kWatch = absl::Seconds(5);
// Together less than the second for which ps task 0 stays after the end of the
// job: who waited long for it must not miss a job that is over in a moment.
constexpr absl::Duration kPause = absl::Milliseconds(200);
// ps task 0 that was not reached for so long has left, or died: it neither
// drains nor restarts as slowly.
constexpr absl::Duration kGone = absl::Seconds(5);
// For ps task 0 to hear that the end is known.
constexpr absl::Duration kConfirmTimeout = absl::Seconds(1);
constexpr int kConfirmAttempts = 3;

// The longest text kept of ps task 0's reason to end.
constexpr size_t kMaxReasonChars = 400;

std::string CauseOf(const grpc::Status& status, PeerCheck* check) {
  std::string found = check->Explain(status);
  if (!found.empty()) return found;
  return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
             ? "no answer in time"
             : ConnectionCause(status.error_message());
}

}  // namespace

JobWatcher::JobWatcher(Options options)
    : options_(std::move(options)),
      channel_(PeerChannel::Opener(options_.address, options_.credentials)),
      check_(options_.address, options_.clock),
      last_heard_(options_.clock->Now()) {
  thread_ = std::thread([this] { Run(); });
}

JobWatcher::~JobWatcher() {
  {
    absl::MutexLock lock(&mu_);
    quit_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  thread_.join();
}

void JobWatcher::Run() {
  while (WatchOnce()) {
  }
}

grpc::Status JobWatcher::Watch(absl::Duration wait, absl::Duration timeout,
                               JobState* state) {
  const grpc::Status ended(grpc::StatusCode::CANCELLED,
                           "the watcher has ended");
  grpc::ClientContext context;
  context.set_deadline(ToGrpcDeadline(options_.clock->Now() + timeout));
  WatchRequest request;
  *request.mutable_sender() = options_.sender;
  request.set_state_version(state_version_);
  request.set_max_wait_ms(
      static_cast<int32_t>(absl::ToInt64Milliseconds(wait)));
  {
    absl::MutexLock lock(&mu_);
    if (quit_) return ended;
    call_ = &context;
  }
  const std::shared_ptr<grpc::Channel> channel = channel_.Get();
  const grpc::Status status =
      CoordinationService::NewStub(channel)->Watch(&context, request, state);
  channel_.OnFailure(channel, ToAbslStatus(status));
  absl::MutexLock lock(&mu_);
  call_ = nullptr;
  return quit_ ? ended : status;
}

bool JobWatcher::WatchOnce() {
  JobState state;
  // The next line may be due before anything changes.
  const absl::Duration wait =
      std::clamp(waiting_.next_due() - options_.clock->Now(), kPause, kWatch);
  const grpc::Status status = Watch(wait, wait + kControlTimeout, &state);
  {
    absl::MutexLock lock(&mu_);
    if (quit_) return false;
  }
  return status.ok() ? OnState(state) : OnFailure(status);
}

bool JobWatcher::OnState(const JobState& state) {
  last_heard_ = options_.clock->Now();
  check_.OnAnswer();
  state_version_ = state.state_version();
  if (!state.abandoned().empty() && !options_.keep_serving) {
    options_.latch->Stop(
        {kExitRetryable, EscapeForLog(state.abandoned(), kMaxReasonChars)});
    return false;
  }
  if (state.phase() != DONE || options_.keep_serving) {
    SayWait(options_.awaited ? options_.awaited(state) : "");
    return true;
  }
  ConfirmEnd();
  options_.latch->Stop(state.unsaved()
                           ? StopReason{kExitRetryable, DescribeUnsavedEnd()}
                           : StopReason{kExitDone, "the job is done"});
  return false;
}

void JobWatcher::ConfirmEnd() {
  JobState state;
  for (int i = 0; i < kConfirmAttempts; ++i) {
    if (Watch(absl::ZeroDuration(), kConfirmTimeout, &state).ok()) return;
    if (!Pause(kPause)) return;
  }
}

bool JobWatcher::OnFailure(const grpc::Status& status) {
  const absl::Time now = options_.clock->Now();
  // A new ps task 0 counts its versions from the start.
  state_version_ = 0;
  const std::string ps_0 = absl::StrCat("/job:ps/task:0 at ", options_.address,
                                        " (", CauseOf(status, &check_), ")");
  if (now - last_heard_ > options_.max_wait) {
    options_.latch->Stop(
        {kExitRetryable,
         absl::StrCat("gave up after waiting ",
                      absl::FormatDuration(options_.max_wait), " for ", ps_0,
                      ", which knows whether the job goes on; start it, then "
                      "this task again, or wait longer (--max_wait)")});
    return false;
  }
  if (now - last_heard_ > kGone && options_.has_ended != nullptr &&
      options_.has_ended()) {
    options_.latch->Stop(
        {kExitDone, "the job has ended and its ps tasks left"});
    return false;
  }
  SayWait(ps_0);
  return Pause(kPause);
}

void JobWatcher::SayWait(const std::string& what) {
  std::string line;
  if (!what.empty()) {
    line = waiting_.WaitFor(what, options_.clock->Now());
  } else if (waiting_.Stop()) {
    line = "no longer waiting";
  }
  if (!line.empty()) options_.reporter.Info(line);
}

bool JobWatcher::Pause(absl::Duration duration) {
  absl::MutexLock lock(&mu_);
  return !options_.clock->Await(&mu_, absl::Condition(&quit_), duration);
}

}  // namespace muster
