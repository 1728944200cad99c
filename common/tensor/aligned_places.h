#ifndef COMMON_TENSOR_ALIGNED_PLACES_H_
#define COMMON_TENSOR_ALIGNED_PLACES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/aligned_buffer.h"

namespace muster {

// Where each of several pieces begins that lie in one memory, one after
// another, each at a multiple of AlignedBuffer::kAlignment; in bytes.
class AlignedPlaces {
 public:
  // Takes a piece of `size_bytes`; returns where it begins.
  int64_t Add(int64_t size_bytes) {
    const int64_t begin = size_bytes_;
    size_bytes_ += (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    return begin;
  }

  // The same of a piece that others may map alone: it begins where a page does.
  int64_t AddAtPage(int64_t size_bytes) {
    size_bytes_ = (size_bytes_ + kPageBytes - 1) / kPageBytes * kPageBytes;
    return Add(size_bytes);
  }

  // The size of all that was added.
  int64_t size_bytes() const { return size_bytes_; }

 private:
  static constexpr int64_t kAlignment = AlignedBuffer::kAlignment;
  // The largest page of machines that are in use; those of most are smaller.
  static constexpr int64_t kPageBytes = int64_t{64} << 10;

  int64_t size_bytes_ = 0;
};

// Makes `memory` hold spans of so many elements, zeroed; returns them.
template <typename T>
std::vector<absl::Span<T>> PlaceSpans(absl::Span<const int64_t> elements,
                                      AlignedBuffer* memory) {
  AlignedPlaces places;
  std::vector<int64_t> begins;
  for (const int64_t count : elements) {
    begins.push_back(places.Add(count * static_cast<int64_t>(sizeof(T))));
  }
  *memory = AlignedBuffer(places.size_bytes());
  std::vector<absl::Span<T>> spans;
  for (size_t i = 0; i < begins.size(); ++i) {
    spans.emplace_back(reinterpret_cast<T*>(memory->data() + begins[i]),
                       elements[i]);
  }
  return spans;
}

}  // namespace muster

#endif  // COMMON_TENSOR_ALIGNED_PLACES_H_
