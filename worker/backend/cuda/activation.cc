#include "absl/strings/str_cat.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/elementwise_kernel.h"

namespace muster {
namespace {

class CudaActivationForward : public CudaPrimitive {
 public:
  CudaActivationForward(CudaDevice* device, const ActivationDesc& desc,
                        const MemoryLayout& layout)
      : CudaPrimitive(
            device, absl::StrCat("activation forward of ", layout.ToString())),
        desc_(desc),
        elements_(layout.shape.num_elements()) {
    Take(Operand::kSrc, layout);
    Take(Operand::kDst, layout);
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    return Check(ActivationForward(
        kernels(), desc_, operands.As<const float>(Operand::kSrc),
        operands.As<float>(Operand::kDst), elements_));
  }

  const ActivationDesc desc_;
  const int64_t elements_;
};

class CudaActivationBackward : public CudaPrimitive {
 public:
  CudaActivationBackward(CudaDevice* device, const ActivationDesc& desc,
                         const MemoryLayout& layout)
      : CudaPrimitive(
            device, absl::StrCat("activation backward of ", layout.ToString())),
        desc_(desc),
        elements_(layout.shape.num_elements()) {
    Take(Operand::kDst, layout);
    Take(Operand::kDiffDst, layout);
    Take(Operand::kDiffSrc, layout);
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    return Check(ActivationBackward(
        kernels(), desc_, operands.As<const float>(Operand::kDst),
        operands.As<const float>(Operand::kDiffDst),
        operands.As<float>(Operand::kDiffSrc), elements_));
  }

  const ActivationDesc desc_;
  const int64_t elements_;
};

MadePrimitive MakeForward(CudaDevice* device, const ActivationDesc& desc,
                          const MemoryLayout& src) {
  return std::make_unique<CudaActivationForward>(device, desc, src);
}

MadePrimitive MakeBackward(CudaDevice* device, const ActivationDesc& desc,
                           const MemoryLayout& dst) {
  return std::make_unique<CudaActivationBackward>(device, desc, dst);
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<ActivationDesc>(Pass::kForward, &MakeForward) &&
    CudaPrimitives::Register<ActivationDesc>(Pass::kBackward, &MakeBackward);

}  // namespace
}  // namespace muster
