#include <algorithm>
#include <cmath>

#include "tests/worker/backend/ref/ref_primitive.h"

namespace muster {
namespace {

template <typename T>
T Forward(const ActivationDesc& desc, T src) {
  switch (desc.kind) {
    case ActivationKind::kRelu:
      return std::max(src, T{0});
    case ActivationKind::kSigmoid:
      return 1 / (1 + std::exp(-src));
    case ActivationKind::kTanh:
      return std::tanh(src);
    case ActivationKind::kLeakyRelu:
      return src > 0 ? src : static_cast<T>(desc.slope) * src;
  }
  return src;
}

template <typename T>
T Derivative(const ActivationDesc& desc, T dst) {
  switch (desc.kind) {
    case ActivationKind::kRelu:
      return dst > 0 ? 1 : 0;
    case ActivationKind::kSigmoid:
      return dst * (1 - dst);
    case ActivationKind::kTanh:
      return 1 - dst * dst;
    case ActivationKind::kLeakyRelu:
      return dst > 0 ? 1 : static_cast<T>(desc.slope);
  }
  return 1;
}

template <typename T>
class ActivationForward : public Primitive {
 public:
  ActivationForward(const ActivationDesc& desc, const Shape& shape)
      : desc_(desc), size_(shape.num_elements()) {
    Take(Operand::kSrc, RefLayout<T>(shape));
    Take(Operand::kDst, RefLayout<T>(shape));
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* src = operands.As<const T>(Operand::kSrc);
    T* dst = operands.As<T>(Operand::kDst);
    for (int64_t i = 0; i < size_; ++i) dst[i] = Forward(desc_, src[i]);
    return absl::OkStatus();
  }

  const ActivationDesc desc_;
  const int64_t size_;
};

template <typename T>
class ActivationBackward : public Primitive {
 public:
  ActivationBackward(const ActivationDesc& desc, const Shape& shape)
      : desc_(desc), size_(shape.num_elements()) {
    Take(Operand::kDst, RefLayout<T>(shape));
    Take(Operand::kDiffDst, RefLayout<T>(shape));
    Take(Operand::kDiffSrc, RefLayout<T>(shape));
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* dst = operands.As<const T>(Operand::kDst);
    const T* diff_dst = operands.As<const T>(Operand::kDiffDst);
    T* diff_src = operands.As<T>(Operand::kDiffSrc);
    for (int64_t i = 0; i < size_; ++i) {
      diff_src[i] = diff_dst[i] * Derivative(desc_, dst[i]);
    }
    return absl::OkStatus();
  }

  const ActivationDesc desc_;
  const int64_t size_;
};

[[maybe_unused]] const bool kRegistered =
    RegisterRef<ActivationDesc, ActivationForward>(Pass::kForward) &&
    RegisterRef<ActivationDesc, ActivationBackward>(Pass::kBackward);

}  // namespace
}  // namespace muster
