#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/types/span.h"
#include "common/base/finite.h"
#include "common/base/status_macros.h"
#include "worker/backend/check_labels.h"
#include "worker/backend/cpu/cpu_primitive.h"

namespace muster {
namespace {

// Plain loops: the classifiers trained here have tens of classes, and this is
// a ten-thousandth of their step.
class SoftmaxCrossEntropy : public Primitive {
 public:
  explicit SoftmaxCrossEntropy(const SoftmaxCrossEntropyDesc& desc)
      : desc_(desc), training_(desc.phase == Phase::kTraining) {
    const MemoryLayout src = MemoryLayout::RowMajor(FLOAT32, desc.src_shape());
    Take(Operand::kSrc, src);
    Take(Operand::kLabels, MemoryLayout::RowMajor(INT32, {desc.batch}));
    if (desc.weighted) {
      Take(Operand::kRowWeights, MemoryLayout::RowMajor(FLOAT32, {desc.batch}));
    }
    Take(Operand::kLoss, MemoryLayout::RowMajor(FLOAT64, {1}));
    Take(Operand::kCorrect, MemoryLayout::RowMajor(INT64, {1}));
    if (training_) Take(Operand::kDiffSrc, src);
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const float* src = operands.As<const float>(Operand::kSrc);
    const int32_t* labels = operands.As<const int32_t>(Operand::kLabels);
    const float* weights = operands.As<const float>(Operand::kRowWeights);
    float* diff_src = operands.As<float>(Operand::kDiffSrc);
    const int64_t rows = operands.rows, classes = desc_.classes;
    RETURN_IF_ERROR(CheckLabels(desc_, labels, rows));
    double loss = 0;
    int64_t correct = 0;
    for (int64_t n = 0; n < rows; ++n) {
      const float* row = src + n * classes;
      const float* largest = std::max_element(row, row + classes);
      if (largest - row == labels[n] &&
          FirstNonFinite(absl::MakeConstSpan(row, classes)) < 0) {
        ++correct;
      }
      const float weight = weights == nullptr ? 1 : weights[n];
      float* diff = training_ ? diff_src + n * classes : nullptr;
      loss += weight *
              (training_ ? LossAndGradient(row, *largest, labels[n], rows, diff)
                         : Loss(row, *largest, labels[n]));
      if (desc_.label_smoothing > 0) {
        loss += weight * Smooth(row, labels[n], rows, diff);
      }
      if (weights == nullptr || !training_) continue;
      for (int64_t k = 0; k < classes; ++k) diff[k] *= weight;
    }
    if (training_) {
      std::memset(diff_src + rows * classes, 0,
                  (desc_.batch - rows) * classes * sizeof(float));
    }
    *operands.As<double>(Operand::kLoss) = loss / rows;
    *operands.As<int64_t>(Operand::kCorrect) = correct;
    return absl::OkStatus();
  }

  double Loss(const float* row, float largest, int32_t label) const {
    float sum = 0;
    for (int64_t k = 0; k < desc_.classes; ++k) {
      sum += std::exp(row[k] - largest);
    }
    return std::log(sum) - (row[label] - largest);
  }

  double LossAndGradient(const float* row, float largest, int32_t label,
                         int64_t rows, float* diff) const {
    float sum = 0;
    for (int64_t k = 0; k < desc_.classes; ++k) {
      diff[k] = std::exp(row[k] - largest);
      sum += diff[k];
    }
    const float scale = 1 / (sum * static_cast<float>(rows));
    for (int64_t k = 0; k < desc_.classes; ++k) diff[k] *= scale;
    diff[label] -= 1 / static_cast<float>(rows);
    return std::log(sum) - (row[label] - largest);
  }

  // The part of the loss that smoothing adds: the target at the label falls by
  // `label_smoothing`, and all rise by their share of it.
  double Smooth(const float* row, int32_t label, int64_t rows,
                float* diff) const {
    const auto smoothing = static_cast<float>(desc_.label_smoothing);
    const float share = smoothing / static_cast<float>(desc_.classes);
    double sum = 0;
    for (int64_t k = 0; k < desc_.classes; ++k) sum += row[label] - row[k];
    if (diff != nullptr) {
      const float scale = 1 / static_cast<float>(rows);
      for (int64_t k = 0; k < desc_.classes; ++k) diff[k] -= share * scale;
      diff[label] += smoothing * scale;
    }
    return share * sum;
  }

  const SoftmaxCrossEntropyDesc desc_;
  const bool training_;
};

CpuPrimitive MakePrimitive(const CpuContext&,
                           const SoftmaxCrossEntropyDesc& desc) {
  return std::make_unique<SoftmaxCrossEntropy>(desc);
}

[[maybe_unused]] const bool kRegistered =
    CpuPrimitives::Register<SoftmaxCrossEntropyDesc>(Pass::kForward,
                                                     &MakePrimitive);

}  // namespace
}  // namespace muster
