#ifndef WORKER_BACKEND_CUDA_PRODUCT_OPERAND_H_
#define WORKER_BACKEND_CUDA_PRODUCT_OPERAND_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/backend/cuda/cast_kernel.h"
#include "worker/backend/cuda/cuda_device.h"
#include "worker/backend/cuda/scratch_parts.h"

namespace muster {

// A float32 operand as cuDNN or cuBLASLt takes it: itself, or with factors in
// bf16 a copy of it in the scratch of the primitive. A value.
class ProductOperand {
 public:
  ProductOperand(const CudaPrecision& precision, int64_t elements,
                 ScratchParts* scratch)
      : is_bf16_(precision.bf16), elements_(elements) {
    if (is_bf16_) place_ = scratch->Add(elements * sizeof(uint16_t));
  }

  // Where the library reads or writes it.
  void* At(void* operand, void* scratch) const {
    return is_bf16_ ? ScratchParts::At<>(scratch, place_) : operand;
  }
  // Puts the operand there, for the library to read.
  absl::Status Load(const KernelStream& stream, const float* operand,
                    void* scratch) const {
    if (!is_bf16_) return absl::OkStatus();
    return CastToBf16(stream, operand, Copy(scratch), elements_);
  }
  // Puts what the library has written there into the operand.
  absl::Status Store(const KernelStream& stream, float* operand,
                     void* scratch) const {
    if (!is_bf16_) return absl::OkStatus();
    return CastFromBf16(stream, Copy(scratch), operand, elements_);
  }

 private:
  uint16_t* Copy(void* scratch) const {
    return ScratchParts::At<uint16_t>(scratch, place_);
  }

  bool is_bf16_;
  int64_t elements_;
  int64_t place_ = 0;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_PRODUCT_OPERAND_H_
