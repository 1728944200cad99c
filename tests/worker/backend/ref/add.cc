#include "tests/worker/backend/ref/ref_primitive.h"

namespace muster {
namespace {

template <typename T>
class Add : public Primitive {
 public:
  explicit Add(const AddDesc& desc) : desc_(desc) {
    for (int i = 0; i < desc.num_srcs; ++i) {
      Take(Operand::kSrc, RefLayout<T>(desc.shape));
    }
    Take(Operand::kDst, RefLayout<T>(desc.shape));
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    T* dst = operands.As<T>(Operand::kDst);
    for (int64_t i = 0; i < desc_.shape.num_elements(); ++i) {
      T sum = 0;
      for (int j = 0; j < desc_.num_srcs; ++j) {
        sum += operands.As<const T>(Operand::kSrc, j)[i];
      }
      dst[i] = sum;
    }
    return absl::OkStatus();
  }

  const AddDesc desc_;
};

[[maybe_unused]] const bool kRegistered =
    RegisterRef<AddDesc, Add>(Pass::kForward);

}  // namespace
}  // namespace muster
