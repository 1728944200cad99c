#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/elementwise_kernel.h"

namespace muster {
namespace {

class CudaAdd : public CudaPrimitive {
 public:
  CudaAdd(CudaDevice* device, const AddDesc& desc, const MemoryLayout& layout)
      : CudaPrimitive(device, absl::StrCat("add ", desc.num_srcs, " of ",
                                           layout.ToString())),
        elements_(layout.shape.num_elements()),
        srcs_(desc.num_srcs) {
    for (int i = 0; i < desc.num_srcs; ++i) Take(Operand::kSrc, layout);
    Take(Operand::kDst, layout);
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    for (int i = 0; i < static_cast<int>(srcs_.size()); ++i) {
      srcs_[i] = operands.As<const float>(Operand::kSrc, i);
    }
    return Check(DividedSum(kernels(), srcs_, /*divisor=*/1,
                            operands.As<float>(Operand::kDst), elements_));
  }

  const int64_t elements_;
  // The sources of one Execute; here, so that none allocates.
  std::vector<const float*> srcs_;
};

MadePrimitive MakePrimitive(CudaDevice* device, const AddDesc& desc,
                            const MemoryLayout& layout) {
  return std::make_unique<CudaAdd>(device, desc, layout);
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<AddDesc>(Pass::kForward, &MakePrimitive);

}  // namespace
}  // namespace muster
