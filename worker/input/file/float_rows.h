#ifndef WORKER_INPUT_FILE_FLOAT_ROWS_H_
#define WORKER_INPUT_FILE_FLOAT_ROWS_H_

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/process/memory_limit.h"

namespace muster {

// Rows of float32 that come one after the other, in blocks, so that a growing
// table is never copied.
class FloatRows {
 public:
  // REQUIRES: columns > 0.
  explicit FloatRows(int64_t columns)
      : columns_(columns),
        block_rows_(std::max<int64_t>(1, kBlockValues / columns)) {}

  int64_t num_rows() const { return num_rows_; }
  int64_t num_columns() const { return columns_; }

  // REQUIRES: `row` has num_columns() values. Errors: InvalidArgument (too
  // little memory).
  absl::Status Append(absl::Span<const float> row) {
    assert(static_cast<int64_t>(row.size()) == columns_);
    if (num_rows_ % block_rows_ == 0) {
      const int64_t block_bytes = block_rows_ * columns_ * 4;
      const int64_t blocks = static_cast<int64_t>(blocks_.size()) + 1;
      const absl::Status status =
          CheckMemory("the table", SaturatingProduct(blocks, block_bytes),
                      OwnMemoryLimit());
      if (!status.ok()) return status;
      blocks_.emplace_back();
      blocks_.back().reserve(block_rows_ * columns_);
    }
    blocks_.back().insert(blocks_.back().end(), row.begin(), row.end());
    ++num_rows_;
    return absl::OkStatus();
  }

  // REQUIRES: 0 <= row < num_rows().
  absl::Span<const float> Row(int64_t row) const {
    assert(row >= 0 && row < num_rows_);
    return {blocks_[row / block_rows_].data() + row % block_rows_ * columns_,
            static_cast<size_t>(columns_)};
  }
  absl::Span<float> MutableRow(int64_t row) {
    assert(row >= 0 && row < num_rows_);
    return {blocks_[row / block_rows_].data() + row % block_rows_ * columns_,
            static_cast<size_t>(columns_)};
  }

 private:
  // 1 MiB.
  static constexpr int64_t kBlockValues = int64_t{1} << 18;

  int64_t columns_;
  int64_t block_rows_;
  int64_t num_rows_ = 0;
  std::vector<std::vector<float>> blocks_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_FLOAT_ROWS_H_
