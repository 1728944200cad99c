#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/cuda_layout.h"
#include "worker/backend/cuda/cuda_primitive.h"
#include "worker/backend/cuda/pool_kernel.h"

namespace muster {
namespace {

PoolShape ShapeOf(const PoolDesc& desc, const MemoryLayout& src) {
  PoolShape shape;
  shape.outer = IsNhwc(src) ? desc.batch : desc.batch * desc.channels;
  shape.inner = IsNhwc(src) ? desc.channels : 1;
  shape.height = desc.height;
  shape.width = desc.width;
  shape.dst_height = desc.window.dst_h(desc.height);
  shape.dst_width = desc.window.dst_w(desc.width);
  shape.window = desc.window;
  return shape;
}

// The pixels of the maxima, in the order of dst.
MemoryLayout ArgmaxLayout(const PoolDesc& desc) {
  return MemoryLayout::RowMajor(INT32, {desc.dst_shape().num_elements()});
}

class CudaPoolForward : public CudaPrimitive {
 public:
  CudaPoolForward(CudaDevice* device, const PoolDesc& desc,
                  const MemoryLayout& src)
      : CudaPrimitive(device,
                      absl::StrCat("pool forward of ", src.ToString(), " to ",
                                   desc.dst_shape().ToString())),
        desc_(desc),
        shape_(ShapeOf(desc, src)) {
    Take(Operand::kSrc, src);
    Take(Operand::kDst, LayoutBeside(src, desc.dst_shape()));
    if (desc.kind == PoolKind::kMax && desc.phase == Phase::kTraining) {
      Take(Operand::kWorkspace, ArgmaxLayout(desc));
    }
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const float* const src = operands.As<const float>(Operand::kSrc);
    float* const dst = operands.As<float>(Operand::kDst);
    if (desc_.kind == PoolKind::kAverage) {
      return Check(AveragePoolForward(kernels(), shape_, src, dst));
    }
    int32_t* const argmax = takes(Operand::kWorkspace)
                                ? operands.As<int32_t>(Operand::kWorkspace)
                                : nullptr;
    return Check(
        MaxPoolForward(kernels(), shape_, desc_.relu_before, src, dst, argmax));
  }

  const PoolDesc desc_;
  const PoolShape shape_;
};

class CudaPoolBackward : public CudaPrimitive {
 public:
  CudaPoolBackward(CudaDevice* device, const PoolDesc& desc,
                   const MemoryLayout& src)
      : CudaPrimitive(
            device, absl::StrCat("pool backward to ", src.ToString(), " from ",
                                 desc.dst_shape().ToString())),
        desc_(desc),
        shape_(ShapeOf(desc, src)) {
    Take(Operand::kDiffDst, LayoutBeside(src, desc.dst_shape()));
    Take(Operand::kDiffSrc, src);
    if (desc.kind == PoolKind::kMax) {
      Take(Operand::kWorkspace, ArgmaxLayout(desc));
    }
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const float* const diff_dst = operands.As<const float>(Operand::kDiffDst);
    float* const diff_src = operands.As<float>(Operand::kDiffSrc);
    if (desc_.kind == PoolKind::kAverage) {
      return Check(AveragePoolBackward(kernels(), shape_, diff_dst, diff_src));
    }
    return Check(MaxPoolBackward(
        kernels(), shape_, operands.As<const int32_t>(Operand::kWorkspace),
        diff_dst, diff_src));
  }

  const PoolDesc desc_;
  const PoolShape shape_;
};

// The workspace has 32 bits for a pixel.
absl::Status CheckPlane(const PoolDesc& desc) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (desc.height <= kMost / desc.width) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "pool of ", desc.src_shape().ToString(),
      ": the cuda backend takes planes of at most ", kMost, " pixels"));
}

MadePrimitive MakeForward(CudaDevice* device, const PoolDesc& desc,
                          const MemoryLayout& src) {
  RETURN_IF_ERROR(CheckPlane(desc));
  return std::make_unique<CudaPoolForward>(device, desc,
                                           LayoutBeside(src, desc.src_shape()));
}

MadePrimitive MakeBackward(CudaDevice* device, const PoolDesc& desc,
                           const MemoryLayout& src) {
  RETURN_IF_ERROR(CheckPlane(desc));
  return std::make_unique<CudaPoolBackward>(
      device, desc, LayoutBeside(src, desc.src_shape()));
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<PoolDesc>(Pass::kForward, &MakeForward) &&
    CudaPrimitives::Register<PoolDesc>(Pass::kBackward, &MakeBackward);

}  // namespace
}  // namespace muster
