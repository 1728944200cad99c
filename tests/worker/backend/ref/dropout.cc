#include "tests/worker/backend/ref/ref_primitive.h"
#include "worker/backend/dropout_mask.h"

namespace muster {
namespace {

// One byte an element: 1 if it is kept.
MemoryLayout MaskLayout(const DropoutDesc& desc) {
  return MemoryLayout::RowMajor(UINT8, desc.shape);
}

template <typename T>
class DropoutForward : public Primitive {
 public:
  explicit DropoutForward(const DropoutDesc& desc) : desc_(desc) {
    Take(Operand::kSrc, RefLayout<T>(desc.shape));
    Take(Operand::kDst, RefLayout<T>(desc.shape));
    Take(Operand::kWorkspace, MaskLayout(desc));
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* src = operands.As<const T>(Operand::kSrc);
    T* dst = operands.As<T>(Operand::kDst);
    uint8_t* mask = operands.As<uint8_t>(Operand::kWorkspace);
    const DropoutMask dropout(desc_.rate, operands.seed);
    const T scale = static_cast<T>(1 / (1 - desc_.rate));
    FillMask(dropout, operands.elements, 0, desc_.shape.num_elements(), mask);
    for (int64_t i = 0; i < desc_.shape.num_elements(); ++i) {
      dst[i] = mask[i] ? src[i] * scale : 0;
    }
    return absl::OkStatus();
  }

  const DropoutDesc desc_;
};

template <typename T>
class DropoutBackward : public Primitive {
 public:
  explicit DropoutBackward(const DropoutDesc& desc) : desc_(desc) {
    Take(Operand::kDiffDst, RefLayout<T>(desc.shape));
    Take(Operand::kDiffSrc, RefLayout<T>(desc.shape));
    Take(Operand::kWorkspace, MaskLayout(desc));
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* diff_dst = operands.As<const T>(Operand::kDiffDst);
    T* diff_src = operands.As<T>(Operand::kDiffSrc);
    const uint8_t* mask = operands.As<const uint8_t>(Operand::kWorkspace);
    const T scale = static_cast<T>(1 / (1 - desc_.rate));
    for (int64_t i = 0; i < desc_.shape.num_elements(); ++i) {
      diff_src[i] = mask[i] ? diff_dst[i] * scale : 0;
    }
    return absl::OkStatus();
  }

  const DropoutDesc desc_;
};

[[maybe_unused]] const bool kRegistered =
    RegisterRef<DropoutDesc, DropoutForward>(Pass::kForward) &&
    RegisterRef<DropoutDesc, DropoutBackward>(Pass::kBackward);

}  // namespace
}  // namespace muster
