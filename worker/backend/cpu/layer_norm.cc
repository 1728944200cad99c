#include "common/base/status_macros.h"
#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/cpu/dnnl_layout.h"

namespace muster {
namespace {

dnnl::normalization_flags Flags() {
  return dnnl::normalization_flags::use_scale |
         dnnl::normalization_flags::use_shift;
}

// How the operands lie: all of them row-major.
struct Descs {
  dnnl::memory::desc src, features, rows;
};

absl::StatusOr<Descs> DescsOf(const LayerNormDesc& desc) {
  const auto row_major = [](const Shape& shape) {
    return DnnlDescOf(MemoryLayout::RowMajor(FLOAT32, shape));
  };
  Descs descs;
  ASSIGN_OR_RETURN(descs.src, row_major(desc.src_shape()));
  ASSIGN_OR_RETURN(descs.features, row_major(desc.weights_shape()));
  ASSIGN_OR_RETURN(descs.rows, row_major(desc.row_shape()));
  return descs;
}

dnnl::layer_normalization_forward::primitive_desc Forward(
    const CpuContext& context, const LayerNormDesc& desc, const Descs& descs) {
  const dnnl::prop_kind kind = desc.phase == Phase::kTraining
                                   ? dnnl::prop_kind::forward_training
                                   : dnnl::prop_kind::forward_inference;
  return {
      {kind, descs.src, descs.rows, static_cast<float>(desc.epsilon), Flags()},
      ScratchAttr(),
      context.engine};
}

CpuPrimitive MakeForward(const CpuContext& context, const LayerNormDesc& desc) {
  ASSIGN_OR_RETURN(const Descs descs, DescsOf(desc));
  const auto norm = Forward(context, desc, descs);
  // Empty where they are no operands.
  const dnnl::memory::desc moments =
      desc.phase == Phase::kTraining ? descs.rows : dnnl::memory::desc();
  return DnnlPrimitive::Create(
      context,
      {dnnl::layer_normalization_forward(norm),
       {{DNNL_ARG_SRC, Operand::kSrc, descs.src},
        {DNNL_ARG_SCALE, Operand::kWeights, descs.features},
        {DNNL_ARG_SHIFT, Operand::kBias, descs.features},
        {DNNL_ARG_MEAN, Operand::kMean, moments},
        {DNNL_ARG_VARIANCE, Operand::kVariance, moments},
        {DNNL_ARG_DST, Operand::kDst, descs.src},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, norm.scratchpad_desc()}},
       /*in_place=*/false,
       "layer norm forward"});
}

CpuPrimitive MakeBackward(const CpuContext& context,
                          const LayerNormDesc& desc) {
  ASSIGN_OR_RETURN(const Descs descs, DescsOf(desc));
  const dnnl::layer_normalization_backward::primitive_desc norm(
      {dnnl::prop_kind::backward, descs.src, descs.src, descs.rows,
       static_cast<float>(desc.epsilon), Flags()},
      ScratchAttr(), context.engine, Forward(context, desc, descs));
  return DnnlPrimitive::Create(
      context,
      {dnnl::layer_normalization_backward(norm),
       {{DNNL_ARG_SRC, Operand::kSrc, descs.src},
        {DNNL_ARG_SCALE, Operand::kWeights, descs.features},
        // As with batch norm: an input that is not read.
        {DNNL_ARG_SHIFT, Operand::kWeights, descs.features},
        {DNNL_ARG_MEAN, Operand::kMean, descs.rows},
        {DNNL_ARG_VARIANCE, Operand::kVariance, descs.rows},
        {DNNL_ARG_DIFF_DST, Operand::kDiffDst, descs.src},
        {DNNL_ARG_DIFF_SRC, Operand::kDiffSrc, descs.src},
        {DNNL_ARG_DIFF_SCALE, Operand::kDiffWeights, descs.features},
        {DNNL_ARG_DIFF_SHIFT, Operand::kDiffBias, descs.features},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, norm.scratchpad_desc()}},
       /*in_place=*/false,
       "layer norm backward"});
}

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<LayerNormDesc>(Pass::kForward, &MakeForward) &&
    CpuPrimitives::Register<LayerNormDesc>(Pass::kBackward, &MakeBackward);

}  // namespace
}  // namespace muster
