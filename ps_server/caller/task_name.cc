#include "ps_server/caller/task_name.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

constexpr size_t kMaxPrintedJobName = 40;

}  // namespace

TaskKey KeyOf(const Sender& sender) {
  return {sender.task().job(), sender.task().index()};
}

Sender SenderOf(const TaskKey& key, uint64_t incarnation) {
  Sender sender;
  sender.mutable_task()->set_job(key.first);
  sender.mutable_task()->set_index(key.second);
  sender.set_incarnation(incarnation);
  return sender;
}

bool IsTrainingJob(absl::string_view job) {
  return job == kWorkerJob || job == kChiefJob;
}

std::string TaskName(const TaskKey& key) {
  return absl::StrCat(
      "/job:", absl::CHexEscape(key.first.substr(0, kMaxPrintedJobName)),
      "/task:", key.second);
}

std::string TaskName(const Sender& sender) { return TaskName(KeyOf(sender)); }

}  // namespace muster
