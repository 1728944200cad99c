#include "common/base/status_macros.h"
#include "worker/backend/cpu/cpu_primitives.h"
#include "worker/backend/cpu/dnnl_layout.h"

namespace muster {

CpuPrimitive MakeCpuReorder(const CpuContext& context, const MemoryLayout& from,
                            const MemoryLayout& to) {
  ASSIGN_OR_RETURN(const dnnl::memory::desc src, DnnlDescOf(from));
  ASSIGN_OR_RETURN(const dnnl::memory::desc dst, DnnlDescOf(to));
  const dnnl::reorder::primitive_desc reorder(
      context.engine, src, context.engine, dst, ScratchAttr());
  return DnnlPrimitive::Create(
      context,
      {dnnl::reorder(reorder),
       {{DNNL_ARG_FROM, Operand::kSrc, src},
        {DNNL_ARG_TO, Operand::kDst, dst},
        {DNNL_ARG_SCRATCHPAD, Operand::kScratch, reorder.scratchpad_desc()}},
       /*in_place=*/false,
       "reorder"});
}

}  // namespace muster
