#ifndef WORKER_BACKEND_CUDA_SCRATCH_PARTS_H_
#define WORKER_BACKEND_CUDA_SCRATCH_PARTS_H_

#include <cstdint>

#include "proto/tensor.pb.h"
#include "worker/backend/memory_layout.h"

namespace muster {

// Divides the scratch of a primitive into parts, each aligned to 256 bytes, as
// cuBLASLt wants its workspace, although operands are aligned to 64 alone. A
// value, made when the primitive is.
class ScratchParts {
 public:
  // The place of a new part, for At.
  int64_t Add(int64_t size_bytes) {
    const int64_t place = size_bytes_;
    size_bytes_ += RoundUp(size_bytes);
    return place;
  }

  bool empty() const { return size_bytes_ == 0; }
  // The layout of Operand::kScratch. REQUIRES: !empty().
  MemoryLayout layout() const {
    return MemoryLayout::RowMajor(
        UINT8, Shape{size_bytes_ + kAlignment - kOperandAlignment});
  }

  // The part at `place` of the operand `scratch`.
  template <typename T = void>
  static T* At(void* scratch, int64_t place) {
    const auto begin = reinterpret_cast<uintptr_t>(scratch);
    return reinterpret_cast<T*>(RoundUp(begin) + place);
  }

 private:
  static constexpr int64_t kAlignment = 256;
  static constexpr int64_t kOperandAlignment = 64;

  template <typename T>
  static T RoundUp(T bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  int64_t size_bytes_ = 0;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_SCRATCH_PARTS_H_
