#ifndef TESTS_BENCHMARK_OWNED_PRIMITIVE_H_
#define TESTS_BENCHMARK_OWNED_PRIMITIVE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "common/tensor/aligned_buffer.h"
#include "worker/backend/backend.h"

namespace muster {

// A primitive with memory of its own, which holds small values of both signs.
class OwnedPrimitive {
 public:
  explicit OwnedPrimitive(std::unique_ptr<Primitive> primitive)
      : primitive_(std::move(primitive)) {
    for (int i = 0; i < kNumOperands; ++i) {
      const Operand operand = static_cast<Operand>(i);
      if (!primitive_->takes(operand)) continue;
      const MemoryLayout& layout = primitive_->layout(operand);
      buffers_[i] = AlignedBuffer(layout.size_bytes);
      if (layout.dtype == FLOAT32) Fill(&buffers_[i]);
      operands_.Set(operand, buffers_[i].data());
    }
  }
  bool Execute() { return primitive_->Execute(operands_).ok(); }
  void ReadWorkspaceOf(const OwnedPrimitive& other) {
    operands_.Set(Operand::kWorkspace,
                  other.operands_.Get(Operand::kWorkspace));
  }

 private:
  static void Fill(AlignedBuffer* buffer) {
    const uint32_t n = buffer->size_bytes() / sizeof(float);
    for (uint32_t i = 0; i < n; ++i) {
      const int noise = static_cast<int>(i * 2654435761u >> 20) % 200;
      buffer->as<float>()[i] = 0.01f * static_cast<float>(noise - 100);
    }
  }

  const std::unique_ptr<Primitive> primitive_;
  AlignedBuffer buffers_[kNumOperands];
  Operands operands_;
};

}  // namespace muster

#endif  // TESTS_BENCHMARK_OWNED_PRIMITIVE_H_
