#ifndef COMMON_CHECKPOINT_ROW_BLOCK_H_
#define COMMON_CHECKPOINT_ROW_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

// Some rows of a table as messages have them (LoadPart.rows): the streams ids
// and counts of updates, int64 [n], then values and each slot of the rule,
// float32 [n, dim], one behind the other. Not thread-safe.
class RowBlock {
 public:
  // The streams before the values.
  static constexpr size_t kIds = 0;
  static constexpr size_t kUpdates = 1;
  static constexpr size_t kValues = 2;

  RowBlock(int64_t dim, size_t num_slots)
      : dim_(dim), num_streams_(kValues + 1 + num_slots) {}

  // Bytes of a row in all streams.
  int64_t row_bytes() const {
    return 16 + 4 * dim_ * static_cast<int64_t>(num_streams_ - kValues);
  }
  int64_t rows() const { return rows_; }
  int64_t dim() const { return dim_; }
  size_t num_streams() const { return num_streams_; }

  // Has so many rows, of any content.
  void Resize(int64_t rows) {
    rows_ = rows;
    bytes_.resize(static_cast<size_t>(rows * row_bytes()));
  }

  // All streams, rows() * row_bytes().
  char* data() { return bytes_.data(); }
  absl::string_view stream_bytes(size_t stream) const {
    return {bytes_.data() + BeginOf(stream),
            BeginOf(stream + 1) - BeginOf(stream)};
  }
  // For stream_bytes(stream).size() bytes.
  char* stream_data(size_t stream) { return bytes_.data() + BeginOf(stream); }

  absl::Span<const int64_t> ids() const { return Integers(kIds); }
  absl::Span<const int64_t> updates() const { return Integers(kUpdates); }
  // From kValues on.
  absl::Span<const float> floats(size_t stream) const {
    return {reinterpret_cast<const float*>(stream_bytes(stream).data()),
            static_cast<size_t>(rows_ * dim_)};
  }

 private:
  size_t BeginOf(size_t stream) const {
    if (stream <= kValues) return stream * static_cast<size_t>(8 * rows_);
    return static_cast<size_t>(16 * rows_) +
           (stream - kValues) * static_cast<size_t>(4 * rows_ * dim_);
  }
  absl::Span<const int64_t> Integers(size_t stream) const {
    return {reinterpret_cast<const int64_t*>(stream_bytes(stream).data()),
            static_cast<size_t>(rows_)};
  }

  const int64_t dim_;
  const size_t num_streams_;
  int64_t rows_ = 0;
  // Aligned as operator new does, so that int64 lie well.
  std::vector<char> bytes_;
};

}  // namespace muster

#endif  // COMMON_CHECKPOINT_ROW_BLOCK_H_
