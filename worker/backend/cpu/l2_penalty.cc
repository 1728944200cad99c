#include "worker/backend/cpu/cpu_primitive.h"
#include "worker/backend/cpu/vector_kernels.h"

namespace muster {
namespace {

// One thread, so that the sum does not depend on their number.
class L2Penalty : public Primitive {
 public:
  L2Penalty(const L2PenaltyDesc& desc, const MemoryLayout& weights)
      : desc_(desc),
        floats_(weights.size_bytes / static_cast<int64_t>(sizeof(float))) {
    Take(Operand::kWeights, weights);
    Take(Operand::kLoss, MemoryLayout::RowMajor(FLOAT64, {1}));
    if (desc.phase == Phase::kTraining) Take(Operand::kDiffWeights, weights);
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const float* weights = operands.As<const float>(Operand::kWeights);
    *operands.As<double>(Operand::kLoss) +=
        desc_.scale * SumOfSquares(weights, floats_) / 2;
    if (desc_.phase == Phase::kTraining) {
      AddScaled(weights, static_cast<float>(desc_.scale),
                operands.As<float>(Operand::kDiffWeights), floats_);
    }
    return absl::OkStatus();
  }

  const L2PenaltyDesc desc_;
  const int64_t floats_;
};

CpuPrimitive MakePrimitive(const CpuContext&, const L2PenaltyDesc& desc,
                           const MemoryLayout& weights) {
  return std::make_unique<L2Penalty>(desc, weights);
}

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<L2PenaltyDesc>(Pass::kForward, &MakePrimitive);

}  // namespace
}  // namespace muster
