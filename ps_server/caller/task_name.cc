#include "ps_server/caller/task_name.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr size_t kMaxPrintedJobName = 40;

}  // namespace

TaskKey KeyOf(const Sender& sender) {
  return {sender.task().job(), sender.task().index()};
}

std::string TaskName(const TaskKey& key) {
  return absl::StrCat(
      "/job:", absl::CHexEscape(key.first.substr(0, kMaxPrintedJobName)),
      "/task:", key.second);
}

std::string TaskName(const Sender& sender) { return TaskName(KeyOf(sender)); }

}  // namespace muster
