#include "worker/backend/cpu/dnnl_primitive.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cpu/cpu_threads.h"
#include "worker/backend/cpu/dnnl_layout.h"
#include "worker/backend/cpu/dnnl_status.h"

namespace muster {
namespace {

bool IsOpaque(Operand operand) {
  return operand == Operand::kWorkspace || operand == Operand::kScratch;
}

absl::StatusOr<MemoryLayout> LayoutOf(const DnnlPrimitive::Argument& argument) {
  if (IsOpaque(argument.operand)) {
    return BytesLayout(static_cast<int64_t>(argument.desc.get_size()));
  }
  return muster::LayoutOf(argument.desc);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Primitive>> DnnlPrimitive::Create(
    const CpuContext& context, const Config& config) {
  auto result = absl::WrapUnique(new DnnlPrimitive(context, config));
  for (const Argument& argument : config.arguments) {
    if (argument.desc.get_size() == 0) continue;
    ASSIGN_OR_RETURN(MemoryLayout layout, LayoutOf(argument));
    if (!result->takes(argument.operand)) {
      result->Take(argument.operand, std::move(layout));
    }
    dnnl::memory memory(argument.desc, context.engine, DNNL_MEMORY_NONE);
    result->arguments_.push_back({argument.dnnl_arg, memory.get()});
    result->bound_.push_back({argument.operand, std::move(memory), nullptr});
  }
  if (config.in_place) result->AllowInPlace();
  return result;
}

std::string DnnlPrimitive::description() const {
  const_dnnl_primitive_desc_t desc = nullptr;
  const char* implementation = nullptr;
  if (dnnl_primitive_get_primitive_desc(primitive_.get(), &desc) !=
          dnnl_success ||
      dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, /*index=*/0,
                                &implementation) != dnnl_success) {
    return "oneDNN";
  }
  return absl::StrCat("oneDNN ", implementation);
}

absl::Status DnnlPrimitive::Run(const Operands& operands) {
  UseComputeThreads(threads_);
  for (Bound& bound : bound_) {
    void* const at = operands.Get(bound.operand);
    if (at == bound.at) continue;
    RETURN_IF_ERROR(
        DnnlStatus(dnnl_memory_set_data_handle(bound.memory.get(), at), name_));
    bound.at = at;
  }
  return DnnlStatus(dnnl_primitive_execute(primitive_.get(), stream_.get(),
                                           static_cast<int>(arguments_.size()),
                                           arguments_.data()),
                    name_);
}

dnnl::primitive_attr ScratchAttr() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

}  // namespace muster
