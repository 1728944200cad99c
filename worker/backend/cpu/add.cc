#include <cstring>

#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/cpu/cpu_threads.h"
#include "worker/backend/cpu/vector_kernels.h"

namespace muster {
namespace {

// Elements that are worth a thread.
constexpr int64_t kGrain = 16384;

class Add : public Primitive {
 public:
  Add(const CpuContext& context, const AddDesc& desc,
      const MemoryLayout& layout)
      : num_srcs_(desc.num_srcs),
        floats_(layout.size_bytes / static_cast<int64_t>(sizeof(float))),
        threads_(context.threads) {
    for (int i = 0; i < num_srcs_; ++i) Take(Operand::kSrc, layout);
    Take(Operand::kDst, layout);
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    ParallelFor(threads_, floats_, kGrain, [&](int64_t begin, int64_t end) {
      const float* src = operands.As<const float>(Operand::kSrc) + begin;
      float* dst = operands.As<float>(Operand::kDst) + begin;
      if (num_srcs_ == 1 && dst != src) {
        std::memcpy(dst, src, (end - begin) * sizeof(float));
      }
      for (int i = 1; i < num_srcs_; ++i) {
        AddVectors(i == 1 ? src : dst,
                   operands.As<const float>(Operand::kSrc, i) + begin, dst,
                   end - begin);
      }
    });
    return absl::OkStatus();
  }

  const int num_srcs_;
  const int64_t floats_;
  const int threads_;
};

CpuPrimitive MakePrimitive(const CpuContext& context, const AddDesc& desc,
                           const MemoryLayout& layout) {
  return std::make_unique<Add>(context, desc, layout);
}

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<AddDesc>(Pass::kForward, &MakePrimitive);

}  // namespace
}  // namespace muster
