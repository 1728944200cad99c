#include "ps_server/value_cord.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "common/rpc/protocol.h"

namespace muster {
namespace {

// A reference costs an allocation; below this a copy costs less.
constexpr int64_t kReferFromBytes = 8192;

absl::Cord Gather(const TensorTable& tensors,
                  absl::Span<const CheckedSlice> slices, int64_t bytes,
                  BufferPool* pool) {
  return pool->Make(bytes, [&](char* data) {
    float* dst = reinterpret_cast<float*>(data);
    for (const CheckedSlice& slice : slices) {
      tensors[slice.tensor].Read(/*stream=*/0, slice.offset, slice.length, dst);
      dst += slice.length;
    }
  });
}

// Refers to the values of a slice, block by block.
void Refer(const TensorBlocks& tensor, const CheckedSlice& slice,
           absl::Cord* cord) {
  const int64_t end = slice.offset + slice.length;
  for (int64_t at = slice.offset; at < end;) {
    const int64_t block = at / kBlockElements;
    const int64_t begin = at - block * kBlockElements;
    const int64_t count =
        std::min(end - at, tensor.BlockElements(block) - begin);
    const absl::string_view bytes(
        reinterpret_cast<const char*>(tensor.Stream(block, 0) + begin),
        count * sizeof(float));
    cord->Append(absl::MakeCordFromExternal(bytes, [] {}));
    at += count;
  }
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
    Refer(tensors[slice.tensor], slice, &cord);
  }
  return cord;
}

}  // namespace muster
