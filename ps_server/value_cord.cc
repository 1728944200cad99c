#include "ps_server/value_cord.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "common/codec/encoded_values.h"
#include "common/rpc/protocol.h"

namespace muster {
namespace {

// A reference costs an allocation; below this a copy costs less.
constexpr int64_t kReferFromBytes = 8192;

// Calls body(values, count) for each run of a slice that lies in one block.
template <typename Body>
void ForEachRun(const TensorBlocks& tensor, const CheckedSlice& slice,
                const Body& body) {
  const int64_t end = slice.offset + slice.length;
  for (int64_t at = slice.offset; at < end;) {
    const int64_t block = at / kBlockElements;
    const int64_t begin = at - block * kBlockElements;
    const int64_t count =
        std::min(end - at, tensor.BlockElements(block) - begin);
    body(tensor.Stream(block, /*stream=*/0) + begin, count);
    at += count;
  }
}

}  // namespace

void WriteValues(const TensorTable& tensors,
                 absl::Span<const CheckedSlice> slices, const Codec* codec,
                 char* dst) {
  for (const CheckedSlice& slice : slices) {
    ForEachRun(tensors[slice.tensor], slice,
               [codec, &dst](const float* values, int64_t count) {
                 dst = EncodeTo(codec, values, count, dst);
               });
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
    ForEachRun(tensors[slice.tensor], slice,
               [&cord](const float* values, int64_t count) {
                 const absl::string_view bytes_of_run(
                     reinterpret_cast<const char*>(values),
                     count * sizeof(float));
                 cord.Append(absl::MakeCordFromExternal(bytes_of_run, [] {}));
               });
  }
  return cord;
}

}  // namespace muster
