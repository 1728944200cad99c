#include "tests/simulation/shard_audit.h"

#include <cstring>
#include <string>

#include "absl/status/statusor.h"
#include "common/cluster/task_id.h"
#include "common/rpc/parameter_link.h"
#include "common/rpc/protocol.h"

namespace muster {
namespace {

Sender Auditor(const std::string& space) {
  Sender sender;
  sender.set_namespace_(space);
  *sender.mutable_task() = MakeTaskId(kEvaluatorJob, 0);
  sender.set_incarnation(1);
  return sender;
}

}  // namespace

std::optional<TensorValues> AuditShard(ParameterShard* shard,
                                       uint64_t incarnation,
                                       const std::string& space,
                                       const std::vector<TensorSlice>& slices) {
  StateRequest asked;
  asked.set_namespace_(space);
  // A Hello would make the namespace.
  const absl::StatusOr<ShardState> state = shard->StateOf(asked);
  if (!state.ok()) return std::nullopt;
  HelloRequest hello;
  hello.set_protocol_version(kProtocolVersion);
  *hello.mutable_sender() = Auditor(space);
  if (!shard->Hello(hello).ok()) return std::nullopt;
  TensorValues values;
  for (const TensorSlice& slice : slices) {
    PullRequest pull;
    *pull.mutable_sender() = Auditor(space);
    pull.mutable_fence()->set_ps_incarnation(incarnation);
    pull.mutable_fence()->set_model_epoch(state->model_epoch());
    *pull.add_slices() = slice;
    const absl::StatusOr<Frame<PullReply>> reply = shard->Pull(pull);
    if (!reply.ok()) return std::nullopt;
    values.emplace_back(slice.length());
    const std::string bytes(reply->data);
    std::memcpy(values.back().data(), bytes.data(), bytes.size());
  }
  return values;
}

}  // namespace muster
