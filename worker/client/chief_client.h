#ifndef WORKER_CLIENT_CHIEF_CLIENT_H_
#define WORKER_CLIENT_CHIEF_CLIENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/rpc/parameter_link.h"
#include "proto/parameter_service.pb.h"
#include "proto/table.pb.h"
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

// Whole rows of one table that the chief loads, each id once.
struct LoadedRows {
  int table = 0;
  // [n]
  absl::Span<const int64_t> ids;
  // How often each was updated, [n].
  absl::Span<const int64_t> updates;
  // The values, then each slot of the table's rule; [n, dim].
  std::vector<absl::Span<const float>> streams;
};

// The model that the chief defines on every shard, beside its tensors and
// tables, which SetModel was told.
struct ModelDefinition {
  uint64_t fingerprint = 0;
  OptimizerSpec optimizer;
  ReplicationSpec replication;
  bool allow_non_finite = false;
  // Updates of the model before this epoch.
  int64_t updates = 0;
};

// The slots that the shards keep, as checkpoints name them.
struct DefinedSlots {
  // Of every trainable tensor.
  std::vector<std::string> of_tensors;
  // By table.
  std::vector<std::vector<std::string>> of_tables;
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

  // Starts a load of the model at the epoch that was set. Errors: also Internal
  // if shards disagree on the slots.
  absl::StatusOr<DefinedSlots> Define(const ModelDefinition& definition);
  // Sends values: of the tensors (slot "") or of one of their slots.
  absl::Status Load(absl::string_view slot, absl::Span<const LoadRange> ranges);
  // Sends rows to the ps tasks that have them. Errors: also InvalidArgument for
  // a table or sizes that cannot be, and for a repeated id.
  absl::Status LoadRows(const LoadedRows& rows);
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
  // Reads the rows of a table that a ps task has, from `cursor` on; the reply
  // says where they go on.
  absl::StatusOr<Frame<SnapshotPart>> ReadRows(
      absl::Span<const BeginSnapshotReply> snapshots, int ps_task,
      absl::string_view table, const RowCursor& cursor);
  absl::Status EndSnapshot(absl::Span<const BeginSnapshotReply> snapshots);

 private:
  ShardGroup& shards_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_CHIEF_CLIENT_H_
