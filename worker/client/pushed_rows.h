#ifndef WORKER_CLIENT_PUSHED_ROWS_H_
#define WORKER_CLIENT_PUSHED_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/client/client_model.h"
#include "worker/client/row_parts.h"
#include "worker/client/table_rows.h"

namespace muster {

// What a caller pushes of tables, beside its tensors.
struct RowPush {
  // At most one a table. Ids and gradients are read until the push's end.
  absl::Span<const RowGradients> rows;
  // By ps task, as ParameterClient::PullRows has them: the values that the
  // gradients were computed from. Empty, and where it is kNotAsked: those of
  // the tensors.
  absl::Span<const int64_t> versions;
};

// The rows of one push, in parts: at least one, which may be empty, for each ps
// task.
struct PushedRows {
  RowParts parts;
  // By index in RowPush::rows: its gradients.
  std::vector<std::vector<RowParts::Column>> columns;
  // By ps task.
  std::vector<int64_t> versions;

  // `tensor_versions` as PulledVersions::parts. The parts of a ps come to
  // kMaxStepParts at most, with so many of tensors. Errors: InvalidArgument.
  static absl::StatusOr<PushedRows> Cut(
      const ClientModel& model, const RowPush& push,
      absl::Span<const std::vector<int64_t>> tensor_versions,
      absl::Span<const int> tensor_parts);
};

}  // namespace muster

#endif  // WORKER_CLIENT_PUSHED_ROWS_H_
