#ifndef COMMON_TENSOR_BLOCKS_H_
#define COMMON_TENSOR_BLOCKS_H_

#include <cstdint>

namespace muster {

// A block: the unit of apply, snapshot and duplicate-free parts, and between
// two of them tensors are cut. 256 KiB of float32 stays in an L2 cache together
// with its gradient and slots' stream (64 KB tiles copy at 50 GB/s, 13 MB at 12
// GB/s on Zen 3; 256 KB to 3 MB pieces are equally fast on the wire).
inline constexpr int64_t kBlockElements = 65536;

// Blocks of a tensor of `elements`.
constexpr int64_t NumBlocks(int64_t elements) {
  return (elements + kBlockElements - 1) / kBlockElements;
}

}  // namespace muster

#endif  // COMMON_TENSOR_BLOCKS_H_
