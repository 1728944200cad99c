#ifndef WORKER_CLIENT_CHIEF_CLIENT_H_
#define WORKER_CLIENT_CHIEF_CLIENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/parameter_service.pb.h"
#include "proto/training.pb.h"
#include "worker/client/client_model.h"
#include "worker/client/shard_group.h"

namespace muster {

// A run of values that the chief loads into one tensor or one of its slots.
// The unit of `offset` is that of TensorSlice: elements, or blocks for the
// slot "t".
struct LoadRange {
  int tensor = 0;
  int64_t offset = 0;
  TensorView values;
};

// The model that the chief defines on every shard.
struct ModelDefinition {
  uint64_t fingerprint = 0;
  OptimizerSpec optimizer;
  ReplicationSpec replication;
  bool allow_non_finite = false;
};

// The chief's calls to all shards: it loads the model and reads snapshots of
// it. Each waits for every shard; errors are those of ParameterClient's
// transfers. Thread-safe.
//
//   ChiefClient& chief = client.chief();
//   RETURN_IF_ERROR(chief.LoadModel(definition, values));
//   ASSIGN_OR_RETURN(const auto snapshots, chief.BeginSnapshot());
//   RETURN_IF_ERROR(chief.ReadSnapshot(snapshots, 0, "", 0, length, dst));
//   RETURN_IF_ERROR(chief.EndSnapshot(snapshots));
class ChiefClient {
 public:
  // `shards` outlives this.
  explicit ChiefClient(ShardGroup* shards) : shards_(*shards) {}

  // Starts a load of the model at the epoch that was set. Returns the slots of
  // every trainable tensor. Errors: also Internal if shards disagree on them.
  absl::StatusOr<std::vector<std::string>> Define(
      const ModelDefinition& definition);
  // Sends values: of the tensors (slot "") or of one of their slots.
  absl::Status Load(absl::string_view slot, absl::Span<const LoadRange> ranges);
  // Everything was loaded. Returns the states by ps task.
  absl::StatusOr<std::vector<ShardState>> Seal();
  // Define, Load and Seal of a new model: one view a tensor, slots at their
  // start values.
  absl::Status LoadModel(const ModelDefinition& definition,
                         absl::Span<const TensorView> values);

  // Fixes every shard's values; with a token exactly after update
  // token.round - 1. Returns the replies by ps task. Errors: also Aborted if a
  // shard is past that.
  absl::StatusOr<std::vector<BeginSnapshotReply>> BeginSnapshot(
      const StepToken& token = {});
  // Reads `length` units from `offset` of a tensor (slot "") or slot into
  // `dst`, which has their bytes.
  absl::Status ReadSnapshot(absl::Span<const BeginSnapshotReply> snapshots,
                            int tensor, absl::string_view slot, int64_t offset,
                            int64_t length, char* dst);
  absl::Status EndSnapshot(absl::Span<const BeginSnapshotReply> snapshots);

 private:
  ShardGroup& shards_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_CHIEF_CLIENT_H_
