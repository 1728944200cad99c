#include "ps_server/shard/incarnations.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "ps_server/caller/takeover_token.h"

namespace muster {
namespace {

absl::Status CheckHello(const Sender& sender) {
  if (sender.incarnation() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Hello from ", TaskName(sender), ": the incarnation must not be 0"));
  }
  if (sender.task().job().size() > Incarnations::kMaxJobName) {
    return absl::InvalidArgumentError(
        absl::StrCat("Hello from ", TaskName(sender), "...: a job's name has ",
                     "at most ", Incarnations::kMaxJobName, " characters"));
  }
  return absl::OkStatus();
}

}  // namespace

bool Incarnations::Task::IsRetired(uint64_t incarnation) const {
  return std::find(retired.begin(), retired.end(), incarnation) !=
         retired.end();
}

void Incarnations::Task::Replace(uint64_t incarnation) {
  retired[num_retired % kRememberedIncarnations] = current;
  ++num_retired;
  current = incarnation;
}

absl::StatusOr<uint64_t> Incarnations::Admit(const Sender& sender,
                                             uint64_t takeover) {
  RETURN_IF_ERROR(CheckHello(sender));
  const uint64_t incarnation = sender.incarnation();
  const auto it = tasks_.find(KeyOf(sender));
  if (it == tasks_.end()) {
    const bool is_listed = listed_.Contains(KeyOf(sender));
    if (!is_listed && unlisted_ >= kMaxTasks) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "Hello from ", TaskName(sender), ": this ps serves ", kMaxTasks,
          " tasks already that its cluster does not list"));
    }
    if (!is_listed) ++unlisted_;
    tasks_[KeyOf(sender)].current = incarnation;
    return 0;
  }
  Task& task = it->second;
  if (task.current == incarnation) return 0;
  if (task.IsRetired(incarnation)) return CheckCurrent(sender);
  const uint64_t wanted =
      TakeoverToken(task.current, incarnation, task.num_retired);
  if (takeover != wanted) return wanted;
  task.Replace(incarnation);
  return 0;
}

absl::Status Incarnations::CheckCurrent(const Sender& sender) const {
  const auto it = tasks_.find(KeyOf(sender));
  if (it == tasks_.end()) {
    return FencedError(absl::StrCat(TaskName(sender),
                                    " has not said Hello to this ps process"));
  }
  const Task& task = it->second;
  if (task.current == sender.incarnation()) return absl::OkStatus();
  const std::string start =
      absl::StrCat("incarnation ", absl::Hex(sender.incarnation()), " of ",
                   TaskName(sender));
  if (task.IsRetired(sender.incarnation())) {
    return FencedError(
        absl::StrCat(start, " was replaced by a newer start of that task"),
        ErrorReason::kReplaced);
  }
  return FencedError(
      absl::StrCat(start, " has not said Hello to this ps process"));
}

uint64_t Incarnations::Current(const Sender& sender) const {
  const auto it = tasks_.find(KeyOf(sender));
  return it == tasks_.end() ? 0 : it->second.current;
}

std::vector<uint64_t> Incarnations::AllCurrent() const {
  std::vector<uint64_t> all;
  for (const auto& [key, task] : tasks_) all.push_back(task.current);
  return all;
}

}  // namespace muster
