#ifndef PS_SERVER_SHARD_ROW_TABLES_H_
#define PS_SERVER_SHARD_ROW_TABLES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/rpc/parameter_link.h"
#include "common/tensor/buffer_pool.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/block/row_checks.h"
#include "ps_server/block/row_table.h"
#include "ps_server/block/shard_snapshot.h"

namespace muster {

// Checks the tables that a chief has defined beside tensors: names (grammar; no
// two alike, and none a tensor's), dim, first values, max_rows, a rule without
// weight decay, which row would only see when they are pushed; no parameters
// that are read in place; ps task `ps_index` is the one that is meant; and
// that empty tables take at most `max_bytes`. Returns how many of those are
// left. Errors name the table: InvalidArgument, NotFound.
absl::StatusOr<int64_t> CheckTables(const DefineRequest& request,
                                    int32_t ps_index, int64_t max_bytes);

// The tables of a model: what its requests say of rows is checked and carried
// out here. A request that is refused has changed nothing. `what` begins each
// error. Not thread-safe.
class RowTables {
 public:
  // None.
  RowTables() = default;
  // REQUIRES: CheckTables is OK. Errors: as CreateUpdateRule's.
  static absl::StatusOr<RowTables> Create(const DefineRequest& request);

  bool empty() const { return tables_.empty(); }
  // All of their memory.
  int64_t bytes() const;

  // Errors: InvalidArgument, NotFound; ResourceExhausted beyond `max_bytes` for
  // rows. `updates`: the model's.
  absl::Status Load(absl::string_view what, const Frame<LoadPart>& request,
                    bool allow_non_finite, int64_t max_bytes, int64_t updates);

  // The rows that are asked for, whose values take `bytes`; Read writes those.
  struct Wanted {
    std::vector<RowIds> rows;
    int64_t bytes = 0;
  };
  absl::StatusOr<Wanted> CheckPull(absl::string_view what,
                                   const Frame<PullRowsRequest>& request) const;
  void Read(const Wanted& wanted, char* values) const;

  // The gradients of a part with rows. Errors: InvalidArgument, NotFound.
  absl::StatusOr<std::vector<CheckedRows>> CheckPart(
      absl::string_view what, const Frame<PushPart>& request,
      bool allow_non_finite) const;
  // Makes room for the rows that an update by `rows` makes, and keeps it until
  // EndUpdate. Errors: ResourceExhausted beyond `max_bytes` for rows, naming
  // the table; or if the machine has no memory.
  absl::Status Reserve(absl::string_view what,
                       absl::Span<const CheckedRows> rows, int64_t max_bytes,
                       ShardSnapshot* snapshot);
  // REQUIRES: there is room for them.
  void Update(const CheckedRows& rows, const RowTable::ModelUpdate& update,
              ShardSnapshot* snapshot);
  // Room that was made and not taken is for others.
  void EndUpdate() { reserved_.assign(tables_.size(), 0); }

  // `snapshot` has begun: it has the rows as they are.
  void BeginSnapshot(const ShardSnapshot& snapshot);
  // Frees what is held for snapshots.
  void ClearSnapshot();
  // Errors: InvalidArgument, NotFound. REQUIRES: the snapshot goes on.
  absl::StatusOr<Frame<SnapshotPart>> ReadSnapshot(
      absl::string_view what, const ReadSnapshotRequest& request,
      ShardSnapshot* snapshot, BufferPool* replies);

  // Appends the state of each.
  void AddStates(google::protobuf::RepeatedPtrField<TableState>* states) const;

 private:
  int64_t BytesWith(absl::Span<const int64_t> more) const;

  std::vector<RowTable> tables_;
  // Rows for which there is room, beside those that are there. [table]
  std::vector<int64_t> reserved_;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_ROW_TABLES_H_
