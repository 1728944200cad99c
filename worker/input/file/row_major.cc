#include "worker/input/file/row_major.h"

#include <algorithm>
#include <cstring>

#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"

namespace muster {
namespace {

// A multiple of any element.
constexpr int64_t kChunkBytes = 256 * 1024;

// Writes `count` elements of kBytes each, one every `stride` bytes.
template <size_t kBytes>
void Scatter(const uint8_t* src, int64_t count, int64_t stride, uint8_t* dst) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(dst + i * stride, src + i * kBytes, kBytes);
  }
}

void ScatterElements(int64_t element_bytes, const uint8_t* src, int64_t count,
                     int64_t stride, uint8_t* dst) {
  switch (element_bytes) {
    case 1:
      return Scatter<1>(src, count, stride, dst);
    case 2:
      return Scatter<2>(src, count, stride, dst);
    case 4:
      return Scatter<4>(src, count, stride, dst);
    default:
      return Scatter<8>(src, count, stride, dst);
  }
}

// Walks through the columns of a column-major array, all elements whose indices
// but the first are the same: their places in a row of the row-major one.
class ColumnPlaces {
 public:
  explicit ColumnPlaces(const std::vector<int64_t>& shape)
      : shape_(shape), strides_(shape.size(), 1), index_(shape.size(), 0) {
    for (size_t i = shape.size() - 1; i > 0; --i) {
      strides_[i - 1] = strides_[i] * shape[i];
    }
  }

  int64_t place() const { return place_; }

  void Advance() {
    for (size_t i = 1; i < shape_.size(); ++i) {
      place_ += strides_[i];
      if (++index_[i] < shape_[i]) return;
      place_ -= strides_[i] * shape_[i];
      index_[i] = 0;
    }
  }

 private:
  const std::vector<int64_t>& shape_;
  std::vector<int64_t> strides_;
  std::vector<int64_t> index_;
  int64_t place_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<uint8_t>> ReadRowMajor(
    const FileBytes& values, const std::vector<int64_t>& shape,
    int64_t element_bytes) {
  RETURN_IF_ERROR(
      CheckMemory("turning fortran_order into rows",
                  SaturatingProduct(values.size(), values.in_memory() ? 2 : 1),
                  OwnMemoryLimit()));
  std::vector<uint8_t> rows(values.size());
  const int64_t row_bytes = values.size() / shape[0];
  std::vector<uint8_t> chunk(std::min(values.size(), kChunkBytes));
  ColumnPlaces column(shape);
  int64_t row = 0;
  for (int64_t read = 0; read < values.size();) {
    const int64_t size = std::min(kChunkBytes, values.size() - read);
    RETURN_IF_ERROR(values.ReadAt(read, absl::MakeSpan(chunk.data(), size)));
    read += size;
    for (int64_t done = 0; done < size;) {
      const int64_t count =
          std::min(shape[0] - row, (size - done) / element_bytes);
      ScatterElements(
          element_bytes, chunk.data() + done, count, row_bytes,
          rows.data() + row * row_bytes + column.place() * element_bytes);
      done += count * element_bytes;
      row += count;
      if (row < shape[0]) continue;
      row = 0;
      column.Advance();
    }
  }
  return rows;
}

}  // namespace muster
