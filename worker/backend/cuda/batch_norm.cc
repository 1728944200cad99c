#include "absl/strings/str_cat.h"
#include "worker/backend/cuda/batch_norm_kernel.h"
#include "worker/backend/cuda/cuda_layout.h"
#include "worker/backend/cuda/cuda_primitive.h"

namespace muster {
namespace {

ChannelShape ShapeOf(const BatchNormDesc& desc, const MemoryLayout& src) {
  const int64_t area = desc.height * desc.width;
  if (IsNhwc(src)) return {desc.batch * area, desc.channels, 1};
  return {desc.batch, desc.channels, area};
}

MemoryLayout ByChannel(const BatchNormDesc& desc) {
  return MemoryLayout::RowMajor(FLOAT32, desc.channel_shape());
}

MemoryLayout Floats(int64_t count) {
  return MemoryLayout::RowMajor(FLOAT32, {count});
}

BatchNormMemory MemoryOf(const Operands& operands) {
  BatchNormMemory memory;
  memory.src = operands.As<const float>(Operand::kSrc);
  memory.weights = operands.As<const float>(Operand::kWeights);
  memory.bias = operands.As<const float>(Operand::kBias);
  memory.dst = operands.As<float>(Operand::kDst);
  memory.mean = operands.As<float>(Operand::kMean);
  memory.variance = operands.As<float>(Operand::kVariance);
  memory.diff_dst = operands.As<const float>(Operand::kDiffDst);
  memory.diff_src = operands.As<float>(Operand::kDiffSrc);
  memory.diff_weights = operands.As<float>(Operand::kDiffWeights);
  memory.diff_bias = operands.As<float>(Operand::kDiffBias);
  memory.scratch = operands.As<float>(Operand::kScratch);
  return memory;
}

class CudaBatchNormForward : public CudaPrimitive {
 public:
  CudaBatchNormForward(CudaDevice* device, const BatchNormDesc& desc,
                       const MemoryLayout& layout)
      : CudaPrimitive(
            device, absl::StrCat("batch norm forward of ", layout.ToString())),
        desc_(desc),
        shape_(ShapeOf(desc, layout)) {
    Take(Operand::kSrc, layout);
    for (const Operand operand : {Operand::kWeights, Operand::kBias,
                                  Operand::kMean, Operand::kVariance}) {
      Take(operand, ByChannel(desc));
    }
    Take(Operand::kDst, layout);
    if (desc.phase == Phase::kTraining) {
      Take(Operand::kScratch, Floats(BatchNormForwardScratch(shape_)));
    }
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const BatchNormMemory memory = MemoryOf(operands);
    return Check(
        desc_.phase == Phase::kTraining
            ? BatchNormTraining(kernels(), shape_, desc_.epsilon, memory)
            : BatchNormInference(kernels(), shape_, desc_.epsilon, memory));
  }

  const BatchNormDesc desc_;
  const ChannelShape shape_;
};

class CudaBatchNormBackward : public CudaPrimitive {
 public:
  CudaBatchNormBackward(CudaDevice* device, const BatchNormDesc& desc,
                        const MemoryLayout& layout)
      : CudaPrimitive(
            device, absl::StrCat("batch norm backward of ", layout.ToString())),
        desc_(desc),
        shape_(ShapeOf(desc, layout)) {
    Take(Operand::kSrc, layout);
    Take(Operand::kDiffDst, layout);
    for (const Operand operand :
         {Operand::kWeights, Operand::kMean, Operand::kVariance,
          Operand::kDiffWeights, Operand::kDiffBias}) {
      Take(operand, ByChannel(desc));
    }
    Take(Operand::kDiffSrc, layout);
    Take(Operand::kScratch, Floats(BatchNormBackwardScratch(shape_)));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    return Check(BatchNormBackward(kernels(), shape_, desc_.epsilon,
                                   MemoryOf(operands)));
  }

  const BatchNormDesc desc_;
  const ChannelShape shape_;
};

MadePrimitive MakeForward(CudaDevice* device, const BatchNormDesc& desc,
                          const MemoryLayout& src) {
  return std::make_unique<CudaBatchNormForward>(
      device, desc, LayoutBeside(src, desc.src_shape()));
}

MadePrimitive MakeBackward(CudaDevice* device, const BatchNormDesc& desc,
                           const MemoryLayout& src) {
  return std::make_unique<CudaBatchNormBackward>(
      device, desc, LayoutBeside(src, desc.src_shape()));
}

[[maybe_unused]] const bool kRegistered =
    CudaPrimitives::Register<BatchNormDesc>(Pass::kForward, &MakeForward) &&
    CudaPrimitives::Register<BatchNormDesc>(Pass::kBackward, &MakeBackward);

}  // namespace
}  // namespace muster
