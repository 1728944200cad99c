#include "absl/strings/str_cat.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/dropout_kernel.h"

namespace muster {
namespace {

// The mask goes by row-major index, hence this layout for every operand.
MemoryLayout ValueLayout(const DropoutDesc& desc) {
  return MemoryLayout::RowMajor(FLOAT32, desc.shape);
}

// One byte an element: 1 if it is kept.
MemoryLayout MaskLayout(const DropoutDesc& desc) {
  return MemoryLayout::RowMajor(UINT8, desc.shape);
}

class CudaDropoutForward : public CudaPrimitive {
 public:
  CudaDropoutForward(CudaDevice* device, const DropoutDesc& desc)
      : CudaPrimitive(device, absl::StrCat("dropout forward of ",
                                           ValueLayout(desc).ToString())),
        desc_(desc) {
    Take(Operand::kSrc, ValueLayout(desc));
    Take(Operand::kDst, ValueLayout(desc));
    Take(Operand::kWorkspace, MaskLayout(desc));
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    if (operands.device_seed == nullptr) {
      return absl::InternalError(absl::StrCat(
          what(), ": the seed must be in device memory; device_seed is null"));
    }
    return Check(DropoutForward(kernels(), desc_.rate, operands.device_seed,
                                operands.As<const float>(Operand::kSrc),
                                operands.As<float>(Operand::kDst),
                                operands.As<uint8_t>(Operand::kWorkspace),
                                desc_.shape.num_elements(), operands.elements));
  }

  const DropoutDesc desc_;
};

class CudaDropoutBackward : public CudaPrimitive {
 public:
  CudaDropoutBackward(CudaDevice* device, const DropoutDesc& desc)
      : CudaPrimitive(device, absl::StrCat("dropout backward of ",
                                           ValueLayout(desc).ToString())),
        desc_(desc) {
    Take(Operand::kDiffDst, ValueLayout(desc));
    Take(Operand::kDiffSrc, ValueLayout(desc));
    Take(Operand::kWorkspace, MaskLayout(desc));
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    return Check(DropoutBackward(
        kernels(), desc_.rate, operands.As<const uint8_t>(Operand::kWorkspace),
        operands.As<const float>(Operand::kDiffDst),
        operands.As<float>(Operand::kDiffSrc), desc_.shape.num_elements()));
  }

  const DropoutDesc desc_;
};

MadePrimitive MakeForward(CudaDevice* device, const DropoutDesc& desc) {
  return std::make_unique<CudaDropoutForward>(device, desc);
}

MadePrimitive MakeBackward(CudaDevice* device, const DropoutDesc& desc) {
  return std::make_unique<CudaDropoutBackward>(device, desc);
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<DropoutDesc>(Pass::kForward, &MakeForward) &&
    CudaPrimitives::Register<DropoutDesc>(Pass::kBackward, &MakeBackward);

}  // namespace
}  // namespace muster
