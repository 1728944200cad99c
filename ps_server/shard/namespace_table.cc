#include "ps_server/shard/namespace_table.h"

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster {

NamespaceTable::NamespaceTable(const ShardOptions& options,
                               BufferPool* replies) {
  models_.try_emplace("", options, replies);
}

absl::StatusOr<ShardModel*> NamespaceTable::Find(absl::string_view what,
                                                 absl::string_view name) {
  const auto it = models_.find(name);
  if (it != models_.end()) return &it->second;
  return absl::UnimplementedError(
      absl::StrCat(what, ": namespace '", absl::CHexEscape(name.substr(0, 80)),
                   "'; only the default namespace '' is there"));
}

void NamespaceTable::Forget(const Sender& sender) {
  for (auto& [name, model] : models_) model.Forget(sender);
}

}  // namespace muster
