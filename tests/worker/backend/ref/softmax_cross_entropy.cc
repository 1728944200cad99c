#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "tests/worker/backend/ref/ref_primitive.h"
#include "worker/backend/check_labels.h"

namespace muster {
namespace {

template <typename T>
class SoftmaxCrossEntropy : public Primitive {
 public:
  explicit SoftmaxCrossEntropy(const SoftmaxCrossEntropyDesc& desc)
      : desc_(desc) {
    Take(Operand::kSrc, RefLayout<T>(desc.src_shape()));
    Take(Operand::kLabels, MemoryLayout::RowMajor(INT32, {desc.batch}));
    if (desc.weighted) {
      Take(Operand::kRowWeights, MemoryLayout::RowMajor(FLOAT32, {desc.batch}));
    }
    Take(Operand::kLoss, MemoryLayout::RowMajor(FLOAT64, {1}));
    Take(Operand::kCorrect, MemoryLayout::RowMajor(INT64, {1}));
    if (desc.phase == Phase::kTraining) {
      Take(Operand::kDiffSrc, RefLayout<T>(desc.src_shape()));
    }
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* src = operands.As<const T>(Operand::kSrc);
    const int32_t* labels = operands.As<const int32_t>(Operand::kLabels);
    const float* weights = operands.As<const float>(Operand::kRowWeights);
    RETURN_IF_ERROR(CheckLabels(desc_, labels, operands.rows));
    double loss = 0;
    int64_t correct = 0;
    for (int64_t n = 0; n < operands.rows; ++n) {
      const T* row = src + n * desc_.classes;
      const T* largest = std::max_element(row, row + desc_.classes);
      const T weight = weights == nullptr ? 1 : weights[n];
      T sum = 0;
      for (int64_t k = 0; k < desc_.classes; ++k) {
        sum += std::exp(row[k] - *largest);
      }
      for (int64_t k = 0; k < desc_.classes; ++k) {
        const T target = Target(k, labels[n]);
        // 0 times what may be infinite.
        if (target == 0) continue;
        loss += weight * target * (std::log(sum) - (row[k] - *largest));
      }
      const bool is_finite = std::all_of(row, row + desc_.classes, [](T value) {
        return std::isfinite(value);
      });
      correct += is_finite && largest - row == labels[n] ? 1 : 0;
      if (desc_.phase == Phase::kTraining) {
        T* diff = operands.As<T>(Operand::kDiffSrc) + n * desc_.classes;
        for (int64_t k = 0; k < desc_.classes; ++k) {
          const T softmax = std::exp(row[k] - *largest) / sum;
          diff[k] = weight * (softmax - Target(k, labels[n])) / operands.rows;
        }
      }
    }
    if (desc_.phase == Phase::kTraining) {
      std::fill(
          operands.As<T>(Operand::kDiffSrc) + operands.rows * desc_.classes,
          operands.As<T>(Operand::kDiffSrc) + desc_.batch * desc_.classes,
          T{0});
    }
    *operands.As<double>(Operand::kLoss) = loss / operands.rows;
    *operands.As<int64_t>(Operand::kCorrect) = correct;
    return absl::OkStatus();
  }

  T Target(int64_t k, int32_t label) const {
    const T smoothing = static_cast<T>(desc_.label_smoothing);
    return (k == label ? 1 - smoothing : 0) + smoothing / desc_.classes;
  }

  const SoftmaxCrossEntropyDesc desc_;
};

[[maybe_unused]] const bool kRegistered =
    RegisterRef<SoftmaxCrossEntropyDesc, SoftmaxCrossEntropy>(Pass::kForward);

}  // namespace
}  // namespace muster
