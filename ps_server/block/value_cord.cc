#include "ps_server/block/value_cord.h"

#include "absl/strings/string_view.h"
#include "common/codec/encoded_values.h"

namespace muster {
namespace {

// A reference costs an allocation; below this a copy costs less.
constexpr int64_t kReferFromBytes = 8192;

absl::Span<const float> ValuesOf(const TensorTable& tensors,
                                 const CheckedSlice& slice) {
  return tensors[slice.tensor].parameter().subspan(slice.offset, slice.length);
}

}  // namespace

void WriteValues(const TensorTable& tensors,
                 absl::Span<const CheckedSlice> slices, const Codec* codec,
                 char* dst) {
  for (const CheckedSlice& slice : slices) {
    const absl::Span<const float> values = ValuesOf(tensors, slice);
    dst = EncodeTo(codec, values.data(), static_cast<int64_t>(values.size()),
                   dst);
  }
}

absl::Cord ValueCord(const TensorTable& tensors,
                     absl::Span<const CheckedSlice> slices, BufferPool* pool) {
  const int64_t bytes = SliceBytes(slices, SliceUnit::kElements);
  if (bytes < kReferFromBytes * static_cast<int64_t>(slices.size())) {
    return pool->Make(bytes, [&](char* data) {
      WriteValues(tensors, slices, /*codec=*/nullptr, data);
    });
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
