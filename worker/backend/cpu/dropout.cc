#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/cpu/cpu_threads.h"
#include "worker/backend/cpu/vector_kernels.h"
#include "worker/backend/dropout_mask.h"

namespace muster {
namespace {

// Elements that are worth a thread.
constexpr int64_t kGrain = 4096;

// The mask goes by row-major index, hence this layout for every operand.
MemoryLayout ValueLayout(const DropoutDesc& desc) {
  return MemoryLayout::RowMajor(FLOAT32, desc.shape);
}

// One byte an element: 1 if it is kept.
MemoryLayout MaskLayout(const DropoutDesc& desc) {
  return MemoryLayout::RowMajor(UINT8, desc.shape);
}

class DropoutForward : public Primitive {
 public:
  DropoutForward(const CpuContext& context, const DropoutDesc& desc)
      : desc_(desc),
        threads_(context.threads),
        scale_(static_cast<float>(1 / (1 - desc.rate))) {
    Take(Operand::kSrc, ValueLayout(desc));
    Take(Operand::kDst, ValueLayout(desc));
    Take(Operand::kWorkspace, MaskLayout(desc));
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const float* src = operands.As<const float>(Operand::kSrc);
    float* dst = operands.As<float>(Operand::kDst);
    uint8_t* mask = operands.As<uint8_t>(Operand::kWorkspace);
    const DropoutMask dropout(desc_.rate, operands.seed);
    ParallelFor(threads_, desc_.shape.num_elements(), kGrain,
                [&](int64_t begin, int64_t end) {
                  FillMask(dropout, operands.elements, begin, end, mask);
                  ScaleMasked(src + begin, mask + begin, scale_, dst + begin,
                              end - begin);
                });
    return absl::OkStatus();
  }

  const DropoutDesc desc_;
  const int threads_;
  const float scale_;
};

class DropoutBackward : public Primitive {
 public:
  DropoutBackward(const CpuContext& context, const DropoutDesc& desc)
      : size_(desc.shape.num_elements()),
        threads_(context.threads),
        scale_(static_cast<float>(1 / (1 - desc.rate))) {
    Take(Operand::kDiffDst, ValueLayout(desc));
    Take(Operand::kDiffSrc, ValueLayout(desc));
    Take(Operand::kWorkspace, MaskLayout(desc));
    AllowInPlace();
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const float* diff_dst = operands.As<const float>(Operand::kDiffDst);
    float* diff_src = operands.As<float>(Operand::kDiffSrc);
    const uint8_t* mask = operands.As<const uint8_t>(Operand::kWorkspace);
    ParallelFor(threads_, size_, kGrain, [&](int64_t begin, int64_t end) {
      ScaleMasked(diff_dst + begin, mask + begin, scale_, diff_src + begin,
                  end - begin);
    });
    return absl::OkStatus();
  }

  const int64_t size_;
  const int threads_;
  const float scale_;
};

CpuPrimitive MakeForward(const CpuContext& context, const DropoutDesc& desc) {
  return std::make_unique<DropoutForward>(context, desc);
}

CpuPrimitive MakeBackward(const CpuContext& context, const DropoutDesc& desc) {
  return std::make_unique<DropoutBackward>(context, desc);
}

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<DropoutDesc>(Pass::kForward, &MakeForward) &&
    CpuPrimitives::Register<DropoutDesc>(Pass::kBackward, &MakeBackward);

}  // namespace
}  // namespace muster
