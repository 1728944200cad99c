#include "common/base/status_macros.h"
#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/cpu/dnnl_layout.h"
#include "worker/backend/cpu/relu.h"

namespace muster {
namespace {

// The variants whose backward reads dst instead of src.
dnnl::algorithm AlgorithmOf(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kRelu:
      return dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
    case ActivationKind::kSigmoid:
      return dnnl::algorithm::eltwise_logistic_use_dst_for_bwd;
    case ActivationKind::kTanh:
      return dnnl::algorithm::eltwise_tanh_use_dst_for_bwd;
    // The ReLU below 0 is alpha * x. With an alpha it keeps NaN.
    case ActivationKind::kLeakyRelu:
      return dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
  }
  return dnnl::algorithm::undef;
}

float AlphaOf(const ActivationDesc& desc) {
  return desc.kind == ActivationKind::kLeakyRelu
             ? static_cast<float>(desc.slope)
             : 0;
}

dnnl::eltwise_forward::primitive_desc Forward(const CpuContext& context,
                                              const ActivationDesc& desc,
                                              const dnnl::memory::desc& src) {
  return {{dnnl::prop_kind::forward_training, AlgorithmOf(desc.kind), src,
           AlphaOf(desc)},
          ScratchAttr(),
          context.engine};
}

CpuPrimitive MakeForward(const CpuContext& context, const ActivationDesc& desc,
                         const MemoryLayout& src) {
  if (desc.kind == ActivationKind::kRelu) {
    return MakeRelu(context.threads, src);
  }
  ASSIGN_OR_RETURN(const dnnl::memory::desc src_desc, DnnlDescOf(src));
  const auto eltwise = Forward(context, desc, src_desc);
  return DnnlPrimitive::Create(
      context,
      {dnnl::eltwise_forward(eltwise),
       {{DNNL_ARG_SRC, Operand::kSrc, src_desc},
        {DNNL_ARG_DST, Operand::kDst, src_desc},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, eltwise.scratchpad_desc()}},
       /*in_place=*/true,
       "activation forward"});
}

CpuPrimitive MakeBackward(const CpuContext& context, const ActivationDesc& desc,
                          const MemoryLayout& dst) {
  ASSIGN_OR_RETURN(const dnnl::memory::desc dst_desc, DnnlDescOf(dst));
  const dnnl::eltwise_backward::primitive_desc eltwise(
      {AlgorithmOf(desc.kind), dst_desc, dst_desc, AlphaOf(desc)},
      ScratchAttr(), context.engine, Forward(context, desc, dst_desc));
  return DnnlPrimitive::Create(
      context,
      {dnnl::eltwise_backward(eltwise),
       {{DNNL_ARG_DST, Operand::kDst, dst_desc},
        {DNNL_ARG_DIFF_DST, Operand::kDiffDst, dst_desc},
        {DNNL_ARG_DIFF_SRC, Operand::kDiffSrc, dst_desc},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, eltwise.scratchpad_desc()}},
       /*in_place=*/true,
       "activation backward"});
}

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<ActivationDesc>(Pass::kForward, &MakeForward) &&
    CpuPrimitives::Register<ActivationDesc>(Pass::kBackward, &MakeBackward);

}  // namespace
}  // namespace muster
