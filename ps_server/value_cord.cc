#include "ps_server/value_cord.h"

#include <algorithm>

#include "absl/strings/string_view.h"

namespace muster {
namespace {

// A reference costs an allocation; below this a copy costs less.
constexpr int64_t kReferFromBytes = 8192;

absl::Span<const float> ValuesOf(const TensorTable& tensors,
                                 const CheckedSlice& slice) {
  return tensors[slice.tensor].parameter().subspan(slice.offset, slice.length);
}

absl::Cord Gather(const TensorTable& tensors,
                  absl::Span<const CheckedSlice> slices, int64_t bytes,
                  BufferPool* pool) {
  return pool->Make(bytes, [&](char* data) {
    float* dst = reinterpret_cast<float*>(data);
    for (const CheckedSlice& slice : slices) {
      const absl::Span<const float> values = ValuesOf(tensors, slice);
      dst = std::copy(values.begin(), values.end(), dst);
    }
  });
}

}  // namespace

absl::Cord ValueCord(const TensorTable& tensors,
                     absl::Span<const CheckedSlice> slices, BufferPool* pool) {
  int64_t elements = 0;
  for (const CheckedSlice& slice : slices) elements += slice.length;
  const auto bytes = elements * static_cast<int64_t>(sizeof(float));
  if (bytes < kReferFromBytes * static_cast<int64_t>(slices.size())) {
    return Gather(tensors, slices, bytes, pool);
  }
  absl::Cord cord;
  for (const CheckedSlice& slice : slices) {
    const absl::Span<const float> values = ValuesOf(tensors, slice);
    cord.Append(absl::MakeCordFromExternal(
        {reinterpret_cast<const char*>(values.data()),
         values.size() * sizeof(float)},
        [] {}));
  }
  return cord;
}

}  // namespace muster
