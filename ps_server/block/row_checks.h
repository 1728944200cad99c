#ifndef PS_SERVER_BLOCK_ROW_CHECKS_H_
#define PS_SERVER_BLOCK_ROW_CHECKS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/row_hash.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/table.pb.h"
#include "ps_server/block/row_table.h"

namespace muster {

// Ids of one table, which a message has in this order.
struct RowIds {
  int table = 0;  // its number
  std::vector<int64_t> ids;
};

// Gradients [n, dim] of rows of one table, by logical shard, then id, each
// once.
struct CheckedRows {
  int table = 0;
  int64_t dim = 1;
  RowHash hash;
  std::vector<int64_t> ids;
  std::vector<float> gradients;

  int64_t bytes() const {
    return static_cast<int64_t>(ids.size() * sizeof(int64_t) +
                                gradients.size() * sizeof(float));
  }
};

using RowRuns = google::protobuf::RepeatedPtrField<RowRun>;

// The number of the table called `name`. Errors: NotFound, with the nearest.
absl::StatusOr<int> FindTable(absl::string_view name,
                              absl::Span<const RowTable> tables);

// Reads the ids of a message from outside, with which its data begin: known
// tables, at most 1,024 runs, rows of logical shards that are here, and as many
// bytes as rows take, `row_bytes` each behind the ids; at most a part's.
// `what` begins each error: InvalidArgument, NotFound.
absl::StatusOr<std::vector<RowIds>> CheckRowIds(
    absl::string_view what, const RowRuns& runs, const absl::Cord& data,
    absl::Span<const RowTable> tables,
    absl::FunctionRef<int64_t(const RowTable&)> row_bytes);

// Checks that no id is there twice; returns the order of the ids by logical
// shard, then id: their places. Errors: InvalidArgument.
absl::StatusOr<std::vector<uint32_t>> CheckDistinct(
    absl::string_view what, absl::Span<const int64_t> ids,
    const RowTable& table);

// Reads the gradients of a pushed part: CheckRowIds, no table or id twice,
// finite unless `allow_non_finite`. Errors: InvalidArgument, NotFound.
absl::StatusOr<std::vector<CheckedRows>> CheckRowGradients(
    absl::string_view what, const RowRuns& runs, const absl::Cord& data,
    absl::Span<const RowTable> tables, bool allow_non_finite);

}  // namespace muster

#endif  // PS_SERVER_BLOCK_ROW_CHECKS_H_
