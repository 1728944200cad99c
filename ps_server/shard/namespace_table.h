#ifndef PS_SERVER_SHARD_NAMESPACE_TABLE_H_
#define PS_SERVER_SHARD_NAMESPACE_TABLE_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/block/buffer_pool.h"
#include "ps_server/shard/shard_model.h"
#include "ps_server/shard/shard_options.h"

namespace muster {

// The models of a ps process by namespace: one for now, of the default
// namespace "". Not thread-safe.
class NamespaceTable {
 public:
  // Both outlive this; see ShardModel.
  NamespaceTable(const ShardOptions& options, BufferPool* replies);

  // Errors: Unimplemented, beginning with `what` and naming the namespace.
  absl::StatusOr<ShardModel*> Find(absl::string_view what,
                                   absl::string_view name);

  // The model of the default namespace, which is always there, and first.
  const ShardModel& default_model() const { return models_.begin()->second; }

  // ShardModel::Forget for all of them.
  void Forget(const Sender& sender);

 private:
  std::map<std::string, ShardModel, std::less<>> models_;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_NAMESPACE_TABLE_H_
