#include "worker/backend/cpu/dnnl_pool.h"

#include "common/base/status_macros.h"
#include "worker/backend/cpu/dnnl_layout.h"

namespace muster {
namespace {

dnnl::algorithm AlgorithmOf(PoolKind kind) {
  return kind == PoolKind::kMax ? dnnl::algorithm::pooling_max
                                : dnnl::algorithm::pooling_avg_exclude_padding;
}

struct Geometry {
  explicit Geometry(const WindowDesc& w)
      : kernel{w.kernel_h, w.kernel_w},
        strides{w.stride_h, w.stride_w},
        pads_begin{w.pad_top, w.pad_left},
        pads_end{w.pad_bottom, w.pad_right} {}
  const dnnl::memory::dims kernel, strides, pads_begin, pads_end;
};

dnnl::pooling_forward::primitive_desc Forward(const CpuContext& context,
                                              const PoolDesc& desc,
                                              const dnnl::memory::desc& src) {
  const Geometry geometry(desc.window);
  const auto kind = desc.phase == Phase::kTraining
                        ? dnnl::prop_kind::forward_training
                        : dnnl::prop_kind::forward_inference;
  return {{kind, AlgorithmOf(desc.kind), src, AnyLayout(desc.dst_shape()),
           geometry.strides, geometry.kernel, geometry.pads_begin,
           geometry.pads_end},
          ScratchAttr(),
          context.engine};
}

}  // namespace

CpuPrimitive MakeDnnlPoolForward(const CpuContext& context,
                                 const PoolDesc& desc,
                                 const MemoryLayout& src) {
  ASSIGN_OR_RETURN(const dnnl::memory::desc src_desc, DnnlDescOf(src));
  const auto pool = Forward(context, desc, src_desc);
  return DnnlPrimitive::Create(
      context,
      {dnnl::pooling_forward(pool),
       {{DNNL_ARG_SRC, Operand::kSrc, src_desc},
        {DNNL_ARG_DST, Operand::kDst, pool.dst_desc()},
        {DNNL_ARG_WORKSPACE, Operand::kWorkspace, pool.workspace_desc()},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, pool.scratchpad_desc()}},
       /*in_place=*/false,
       "pool forward"});
}

CpuPrimitive MakeDnnlPoolBackward(const CpuContext& context,
                                  const PoolDesc& desc,
                                  const MemoryLayout& src) {
  ASSIGN_OR_RETURN(const dnnl::memory::desc src_desc, DnnlDescOf(src));
  const auto forward = Forward(context, desc, src_desc);
  const Geometry geometry(desc.window);
  const dnnl::pooling_backward::primitive_desc pool(
      {AlgorithmOf(desc.kind), src_desc, forward.dst_desc(), geometry.strides,
       geometry.kernel, geometry.pads_begin, geometry.pads_end},
      ScratchAttr(), context.engine, forward);
  return DnnlPrimitive::Create(
      context,
      {dnnl::pooling_backward(pool),
       {{DNNL_ARG_DIFF_DST, Operand::kDiffDst, pool.diff_dst_desc()},
        {DNNL_ARG_DIFF_SRC, Operand::kDiffSrc, src_desc},
        {DNNL_ARG_WORKSPACE, Operand::kWorkspace, pool.workspace_desc()},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, pool.scratchpad_desc()}},
       /*in_place=*/false,
       "pool backward"});
}

}  // namespace muster
