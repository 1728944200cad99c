#include "common/base/status_macros.h"
#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/cpu/dnnl_layout.h"

namespace muster {
namespace {

CpuPrimitive MakePrimitive(const CpuContext& context, const ReorderDesc&,
                           absl::Span<const MemoryLayout> layouts) {
  ASSIGN_OR_RETURN(dnnl::memory::desc src, DnnlDescOf(layouts[0]));
  ASSIGN_OR_RETURN(dnnl::memory::desc dst, DnnlDescOf(layouts[1]));
  // Row-major weights of a grouped convolution are seen in its groups.
  if (src.dims().size() < dst.dims().size()) src = src.reshape(dst.dims());
  if (dst.dims().size() < src.dims().size()) dst = dst.reshape(src.dims());
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

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<ReorderDesc>(Pass::kForward, &MakePrimitive);

}  // namespace
}  // namespace muster
