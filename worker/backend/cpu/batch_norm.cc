#include "common/base/status_macros.h"
#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/cpu/dnnl_layout.h"

namespace muster {
namespace {

dnnl::batch_normalization_forward::primitive_desc Forward(
    const CpuContext& context, const BatchNormDesc& desc,
    const dnnl::memory::desc& src) {
  dnnl::normalization_flags flags = dnnl::normalization_flags::use_scale |
                                    dnnl::normalization_flags::use_shift;
  dnnl::prop_kind kind = dnnl::prop_kind::forward_training;
  if (desc.phase == Phase::kInference) {
    flags = flags | dnnl::normalization_flags::use_global_stats;
    kind = dnnl::prop_kind::forward_inference;
  }
  return {{kind, src, static_cast<float>(desc.epsilon), flags},
          ScratchAttr(),
          context.engine};
}

CpuPrimitive MakeForward(const CpuContext& context, const BatchNormDesc& desc,
                         const MemoryLayout& src) {
  ASSIGN_OR_RETURN(const dnnl::memory::desc src_desc, DnnlDescOf(src));
  ASSIGN_OR_RETURN(
      const dnnl::memory::desc channels,
      DnnlDescOf(MemoryLayout::RowMajor(FLOAT32, desc.channel_shape())));
  const auto norm = Forward(context, desc, src_desc);
  return DnnlPrimitive::Create(
      context,
      {dnnl::batch_normalization_forward(norm),
       {{DNNL_ARG_SRC, Operand::kSrc, src_desc},
        {DNNL_ARG_SCALE, Operand::kWeights, channels},
        {DNNL_ARG_SHIFT, Operand::kBias, channels},
        {DNNL_ARG_MEAN, Operand::kMean, channels},
        {DNNL_ARG_VARIANCE, Operand::kVariance, channels},
        {DNNL_ARG_DST, Operand::kDst, src_desc},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, norm.scratchpad_desc()}},
       /*in_place=*/false,
       "batch norm forward"});
}

CpuPrimitive MakeBackward(const CpuContext& context, const BatchNormDesc& desc,
                          const MemoryLayout& src) {
  ASSIGN_OR_RETURN(const dnnl::memory::desc src_desc, DnnlDescOf(src));
  ASSIGN_OR_RETURN(
      const dnnl::memory::desc channels,
      DnnlDescOf(MemoryLayout::RowMajor(FLOAT32, desc.channel_shape())));
  const dnnl::batch_normalization_backward::primitive_desc norm(
      {dnnl::prop_kind::backward, src_desc, src_desc,
       static_cast<float>(desc.epsilon),
       dnnl::normalization_flags::use_scale |
           dnnl::normalization_flags::use_shift},
      ScratchAttr(), context.engine, Forward(context, desc, src_desc));
  return DnnlPrimitive::Create(
      context,
      {dnnl::batch_normalization_backward(norm),
       {{DNNL_ARG_SRC, Operand::kSrc, src_desc},
        {DNNL_ARG_SCALE, Operand::kWeights, channels},
        // oneDNN 2.6 counts it among the inputs, but does not read it.
        {DNNL_ARG_SHIFT, Operand::kWeights, channels},
        {DNNL_ARG_MEAN, Operand::kMean, channels},
        {DNNL_ARG_VARIANCE, Operand::kVariance, channels},
        {DNNL_ARG_DIFF_DST, Operand::kDiffDst, src_desc},
        {DNNL_ARG_DIFF_SRC, Operand::kDiffSrc, src_desc},
        {DNNL_ARG_DIFF_SCALE, Operand::kDiffWeights, channels},
        {DNNL_ARG_DIFF_SHIFT, Operand::kDiffBias, channels},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, norm.scratchpad_desc()}},
       /*in_place=*/false,
       "batch norm backward"});
}

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<BatchNormDesc>(Pass::kForward, &MakeForward) &&
    CpuPrimitives::Register<BatchNormDesc>(Pass::kBackward, &MakeBackward);

}  // namespace
}  // namespace muster
