// The part of SessionMachine that ends: done, stopped by a signal, failed.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/cluster/task_id.h"
#include "worker/call_status.h"
#include "worker/session_machine.h"

namespace muster {
namespace {

// A lost reply to Finish is most often a ps that has exited, as it should.
constexpr int kFinishAttempts = 3;

std::string TaskNames(const std::vector<TaskId>& tasks) {
  return absl::StrJoin(tasks, ", ", [](std::string* out, const TaskId& task) {
    absl::StrAppend(out, TaskName(task));
  });
}

}  // namespace

void SessionMachine::On(const FinalEvent& event) {
  busy_ = false;
  // A full disk is no lost peer: trying for ever would only hide it.
  const bool lost_peer =
      IsTransient(event.status) && !absl::IsResourceExhausted(event.status);
  if (lost_peer || IsFenced(event.status)) {
    // A ps died while the end was being saved: recover, then try again.
    if (signal_ == 0) return Reconnect(event.status);
  }
  final_done_ = true;
  final_status_ = event.status;
}

void SessionMachine::On(const FinishEvent& event) {
  busy_ = false;
  if (event.reply.ok() || ++finish_attempts_ >= kFinishAttempts ||
      signal_ != 0) {
    return ExitWith(exit_code_, exit_text_);
  }
  RetryLater();
}

void SessionMachine::AdvanceSignalled() {
  const int code = 128 + signal_;
  exit_code_ = code;
  exit_text_ = absl::StrCat("stopped by signal ", signal_);
  if (registered_with_ == 0 || !peers_.AllGreeted()) {
    return ExitWith(code, exit_text_);
  }
  const bool in_epoch = entered_epoch_ != 0 &&
                        entered_epoch_ == state_.model_epoch() &&
                        EpochIsUsable(state_, peers_.replies());
  if (in_epoch && report_.step != 0) {
    busy_ = true;
    actions_.push_back(SendStep{entered_epoch_, report_});
    return;
  }
  if (in_epoch && options_.chief && !final_done_) {
    busy_ = true;
    actions_.push_back(RunFinal{/*completed=*/false, "interrupted"});
    return;
  }
  if (!final_status_.ok()) {
    // The signal's exit code does not tell.
    actions_.push_back(
        Say{std::string(final_status_.message()), /*is_error=*/true});
  }
  Finish("interrupted", /*stop_job=*/options_.chief);
}

// The chief's end: after all others. (The others end in Advance.)
void SessionMachine::AdvanceStopping() {
  if (final_done_) {
    exit_code_ = final_status_.ok() ? kExitDone : kExitFailed;
    exit_text_ = std::string(final_status_.message());
    return Finish("done", /*stop_job=*/false);
  }
  std::vector<TaskId> unfinished;
  if (!OthersHaveFinished(state_, options_.self, &unfinished)) {
    return WaitFor(absl::StrCat(TaskNames(unfinished), " to finish"));
  }
  busy_ = true;
  actions_.push_back(RunFinal{/*completed=*/true, state_.stop_reason()});
}

void SessionMachine::Finish(absl::string_view reason, bool stop_job) {
  ending_ = true;
  busy_ = true;
  finish_reason_ = std::string(reason);
  finish_stops_job_ = stop_job;
  actions_.push_back(SendFinish{finish_reason_, stop_job});
}

// Ends with `code`; tells the coordinator first if it knows us. A chief that
// cannot go on ends the job: nobody else could start it.
void SessionMachine::Fail(int code, std::string text) {
  if (registered_with_ == 0) return ExitWith(code, std::move(text));
  exit_code_ = code;
  exit_text_ = std::move(text);
  Finish(absl::StrCat("failed: ", exit_text_), /*stop_job=*/options_.chief);
}

void SessionMachine::ExitWith(int code, std::string text) {
  exited_ = true;
  actions_.push_back(Exit{code, std::move(text)});
}

}  // namespace muster
