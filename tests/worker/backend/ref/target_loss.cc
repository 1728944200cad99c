#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "tests/worker/backend/ref/ref_primitive.h"
#include "worker/backend/check_labels.h"

namespace muster {
namespace {

template <typename T>
class TargetLoss : public Primitive {
 public:
  explicit TargetLoss(const TargetLossDesc& desc) : desc_(desc) {
    Take(Operand::kSrc, RefLayout<T>(desc.src_shape()));
    Take(Operand::kLabels, MemoryLayout::RowMajor(FLOAT32, desc.src_shape()));
    if (desc.weighted) {
      Take(Operand::kRowWeights, MemoryLayout::RowMajor(FLOAT32, {desc.batch}));
    }
    Take(Operand::kLoss, MemoryLayout::RowMajor(FLOAT64, {1}));
    if (desc.counts_correct()) {
      Take(Operand::kCorrect, MemoryLayout::RowMajor(INT64, {1}));
    }
    if (desc.phase == Phase::kTraining) {
      Take(Operand::kDiffSrc, RefLayout<T>(desc.src_shape()));
    }
  }

 private:
  absl::Status Run(const Operands& operands) override {
    RETURN_IF_ERROR(CheckRows(desc_.batch, operands.rows));
    const T* src = operands.As<const T>(Operand::kSrc);
    const float* targets = operands.As<const float>(Operand::kLabels);
    const float* weights = operands.As<const float>(Operand::kRowWeights);
    T* diff_src = operands.As<T>(Operand::kDiffSrc);
    const int64_t count = operands.rows * desc_.outputs;
    double loss = 0;
    for (int64_t i = 0; i < count; ++i) {
      const T target = targets[i];
      const T weight = weights == nullptr ? 1 : weights[i / desc_.outputs];
      loss += weight * Loss(src[i], target);
      if (diff_src == nullptr) continue;
      diff_src[i] = weight * Slope(src[i], target) / count;
    }
    if (diff_src != nullptr) {
      std::fill(diff_src + count, diff_src + desc_.batch * desc_.outputs, T{0});
    }
    *operands.As<double>(Operand::kLoss) = loss / count;
    if (desc_.counts_correct()) {
      *operands.As<int64_t>(Operand::kCorrect) =
          CountCorrect(src, targets, operands.rows);
    }
    return absl::OkStatus();
  }

  T Loss(T x, T target) const {
    if (desc_.kind == TargetLossKind::kSquaredError) {
      return (x - target) * (x - target);
    }
    return std::max(x, T{0}) - x * target + std::log1p(std::exp(-std::abs(x)));
  }
  T Slope(T x, T target) const {
    if (desc_.kind == TargetLossKind::kSquaredError) return 2 * (x - target);
    return 1 / (1 + std::exp(-x)) - target;
  }
  int64_t CountCorrect(const T* src, const float* targets, int64_t rows) const {
    int64_t correct = 0;
    for (int64_t n = 0; n < rows; ++n) {
      bool all = true;
      for (int64_t k = 0; k < desc_.outputs; ++k) {
        const int64_t i = n * desc_.outputs + k;
        all =
            all && std::isfinite(src[i]) && (src[i] > 0) == (targets[i] > 0.5f);
      }
      correct += all ? 1 : 0;
    }
    return correct;
  }

  const TargetLossDesc desc_;
};

[[maybe_unused]] const bool kRegistered =
    RegisterRef<TargetLossDesc, TargetLoss>(Pass::kForward);

}  // namespace
}  // namespace muster
