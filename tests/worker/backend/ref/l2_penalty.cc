#include "tests/worker/backend/ref/ref_primitive.h"

namespace muster {
namespace {

template <typename T>
class L2Penalty : public Primitive {
 public:
  explicit L2Penalty(const L2PenaltyDesc& desc) : desc_(desc) {
    Take(Operand::kWeights, RefLayout<T>(desc.shape));
    Take(Operand::kLoss, MemoryLayout::RowMajor(FLOAT64, {1}));
    if (desc.phase == Phase::kTraining) {
      Take(Operand::kDiffWeights, RefLayout<T>(desc.shape));
    }
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* weights = operands.As<const T>(Operand::kWeights);
    T* diff_weights = operands.As<T>(Operand::kDiffWeights);
    double sum = 0;
    for (int64_t i = 0; i < desc_.shape.num_elements(); ++i) {
      const double weight = weights[i];
      sum += weight * weight;
      if (desc_.phase == Phase::kTraining) {
        diff_weights[i] += static_cast<T>(desc_.scale) * weights[i];
      }
    }
    *operands.As<double>(Operand::kLoss) += desc_.scale * sum / 2;
    return absl::OkStatus();
  }

  const L2PenaltyDesc desc_;
};

[[maybe_unused]] const bool kRegistered =
    RegisterRef<L2PenaltyDesc, L2Penalty>(Pass::kForward);

}  // namespace
}  // namespace muster
