#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "worker/backend/check_labels.h"
#include "worker/backend/cpu/cpu_primitive.h"

namespace muster {
namespace {

// Plain loops, as in softmax_cross_entropy.cc.
class TargetLoss : public Primitive {
 public:
  explicit TargetLoss(const TargetLossDesc& desc) : desc_(desc) {
    const MemoryLayout src = MemoryLayout::RowMajor(FLOAT32, desc.src_shape());
    Take(Operand::kSrc, src);
    Take(Operand::kLabels, src);
    if (desc.weighted) {
      Take(Operand::kRowWeights, MemoryLayout::RowMajor(FLOAT32, {desc.batch}));
    }
    Take(Operand::kLoss, MemoryLayout::RowMajor(FLOAT64, {1}));
    if (desc.counts_correct()) {
      Take(Operand::kCorrect, MemoryLayout::RowMajor(INT64, {1}));
    }
    if (desc.phase == Phase::kTraining) Take(Operand::kDiffSrc, src);
  }

 private:
  absl::Status Run(const Operands& operands) override {
    RETURN_IF_ERROR(CheckRows(desc_.batch, operands.rows));
    const int64_t count = operands.rows * desc_.outputs;
    const float* src = operands.As<const float>(Operand::kSrc);
    const float* targets = operands.As<const float>(Operand::kLabels);
    float* diff_src = operands.As<float>(Operand::kDiffSrc);
    const float scale = 1 / static_cast<float>(count);
    const double sum = desc_.weighted
                           ? WeightedSum(operands, scale)
                           : Sum(src, targets, count, scale, diff_src);
    if (diff_src != nullptr) {
      std::fill(diff_src + count, diff_src + desc_.batch * desc_.outputs, 0.0f);
    }
    *operands.As<double>(Operand::kLoss) = sum / static_cast<double>(count);
    if (desc_.counts_correct()) {
      *operands.As<int64_t>(Operand::kCorrect) =
          CountCorrect(src, targets, operands.rows);
    }
    return absl::OkStatus();
  }

  double WeightedSum(const Operands& operands, float scale) const {
    const float* src = operands.As<const float>(Operand::kSrc);
    const float* targets = operands.As<const float>(Operand::kLabels);
    const float* weights = operands.As<const float>(Operand::kRowWeights);
    float* diff_src = operands.As<float>(Operand::kDiffSrc);
    double sum = 0;
    for (int64_t n = 0; n < operands.rows; ++n) {
      const int64_t row = n * desc_.outputs;
      sum += weights[n] * Sum(src + row, targets + row, desc_.outputs,
                              scale * weights[n],
                              diff_src == nullptr ? nullptr : diff_src + row);
    }
    return sum;
  }

  // The sum of losses; diff becomes `scale` times the derivatives.
  double Sum(const float* src, const float* targets, int64_t count, float scale,
             float* diff) const {
    return desc_.kind == TargetLossKind::kSquaredError
               ? SquaredError(src, targets, count, scale, diff)
               : CrossEntropy(src, targets, count, scale, diff);
  }

  static double SquaredError(const float* src, const float* targets,
                             int64_t count, float scale, float* diff) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float error = src[i] - targets[i];
      sum += error * error;
      if (diff != nullptr) diff[i] = 2 * scale * error;
    }
    return sum;
  }

  static double CrossEntropy(const float* src, const float* targets,
                             int64_t count, float scale, float* diff) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float x = src[i];
      // exp of nothing positive: no overflow.
      const float decay = std::exp(-std::abs(x));
      sum += std::max(x, 0.0f) - x * targets[i] + std::log1p(decay);
      const float sigmoid = (x < 0 ? decay : 1) / (1 + decay);
      if (diff != nullptr) diff[i] = scale * (sigmoid - targets[i]);
    }
    return sum;
  }

  int64_t CountCorrect(const float* src, const float* targets,
                       int64_t rows) const {
    int64_t correct = 0;
    for (int64_t n = 0; n < rows; ++n) {
      const float* row = src + n * desc_.outputs;
      correct +=
          std::equal(row, row + desc_.outputs, targets + n * desc_.outputs,
                     [](float x, float target) {
                       return std::isfinite(x) && (x > 0) == (target > 0.5f);
                     })
              ? 1
              : 0;
    }
    return correct;
  }

  const TargetLossDesc desc_;
};

CpuPrimitive MakePrimitive(const CpuContext&, const TargetLossDesc& desc) {
  return std::make_unique<TargetLoss>(desc);
}

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<TargetLossDesc>(Pass::kForward, &MakePrimitive);

}  // namespace
}  // namespace muster
