#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/cuda_layout.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/strided_copy_kernel.h"

namespace muster {
namespace {

class CudaReorder : public CudaPrimitive {
 public:
  CudaReorder(CudaDevice* device, const MemoryLayout& from,
              const MemoryLayout& to, const StridedCopyShape& shape)
      : CudaPrimitive(device, absl::StrCat("reorder ", from.ToString(), " to ",
                                           to.ToString())),
        shape_(shape) {
    Take(Operand::kSrc, from);
    Take(Operand::kDst, to);
  }

 private:
  absl::Status Run(const Operands& operands) override {
    return Check(StridedCopy(kernels(), shape_,
                             operands.As<const float>(Operand::kSrc),
                             operands.As<float>(Operand::kDst)));
  }

  const StridedCopyShape shape_;
};

MadePrimitive MakePrimitive(CudaDevice* device, const ReorderDesc&,
                            absl::Span<const MemoryLayout> layouts) {
  const MemoryLayout& from = layouts[0];
  const MemoryLayout& to = layouts[1];
  if (from == to) {
    const Index4 sizes = {from.shape.num_elements(), 1, 1, 1};
    const Index4 strides = {1, 1, 1, 1};
    return std::make_unique<CudaReorder>(
        device, from, to, StridedCopyShape{sizes, strides, sizes, strides});
  }
  ASSIGN_OR_RETURN(const StridedShape src, StridedShapeOf(from));
  ASSIGN_OR_RETURN(const StridedShape dst, StridedShapeOf(to));
  return std::make_unique<CudaReorder>(
      device, from, to,
      StridedCopyShape{dst.sizes, dst.strides, src.sizes, src.strides});
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<ReorderDesc>(Pass::kForward, &MakePrimitive);

}  // namespace
}  // namespace muster
