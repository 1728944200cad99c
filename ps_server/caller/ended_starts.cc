#include "ps_server/caller/ended_starts.h"

#include "absl/strings/str_cat.h"
#include "common/config/namespace_name.h"
#include "common/rpc/error_reason.h"
#include "ps_server/caller/task_name.h"

namespace muster {

void EndedStarts::Add(uint64_t incarnation, const std::string& why) {
  if (!why_.emplace(incarnation, why).second) return;
  order_.push_back(incarnation);
  if (order_.size() <= kMost) return;
  why_.erase(order_.front());
  order_.pop_front();
}

absl::Status EndedStarts::Check(const Sender& sender) const {
  const auto it = why_.find(sender.incarnation());
  if (it == why_.end()) return absl::OkStatus();
  return FencedError(absl::StrCat(TaskName(sender), " was ended: ", it->second),
                     ErrorReason::kReplaced);
}

std::string DescribeEnd(const EndNamespaceRequest& request) {
  return absl::StrCat(
      QuotedNamespace(request.namespace_()), " was ",
      request.drop() ? "dropped" : "reset", " (musterctl namespace ",
      request.drop() ? "drop" : "reset", request.force() ? " --force)" : ")");
}

}  // namespace muster
