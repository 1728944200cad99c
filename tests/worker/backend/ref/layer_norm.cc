#include <algorithm>
#include <cmath>

#include "tests/worker/backend/ref/ref_primitive.h"

namespace muster {
namespace {

// A row of src, and what it is standardized by.
template <typename T>
struct Moments {
  T mean = 0;
  T variance = 0;

  static Moments Of(const T* row, int64_t features) {
    Moments moments;
    for (int64_t i = 0; i < features; ++i) moments.mean += row[i];
    moments.mean /= static_cast<T>(features);
    for (int64_t i = 0; i < features; ++i) {
      moments.variance += (row[i] - moments.mean) * (row[i] - moments.mean);
    }
    moments.variance /= static_cast<T>(features);
    return moments;
  }
};

template <typename T>
T InverseDeviation(const LayerNormDesc& desc, T variance) {
  return 1 / std::sqrt(variance + static_cast<T>(desc.epsilon));
}

template <typename T>
class LayerNormForward : public Primitive {
 public:
  explicit LayerNormForward(const LayerNormDesc& desc) : desc_(desc) {
    Take(Operand::kSrc, RefLayout<T>(desc.src_shape()));
    Take(Operand::kWeights, RefLayout<T>(desc.weights_shape()));
    Take(Operand::kBias, RefLayout<T>(desc.weights_shape()));
    Take(Operand::kDst, RefLayout<T>(desc.src_shape()));
    if (desc.phase == Phase::kInference) return;
    Take(Operand::kMean, RefLayout<T>(desc.row_shape()));
    Take(Operand::kVariance, RefLayout<T>(desc.row_shape()));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* weights = operands.As<const T>(Operand::kWeights);
    const T* bias = operands.As<const T>(Operand::kBias);
    for (int64_t n = 0; n < desc_.batch; ++n) {
      const T* src = operands.As<const T>(Operand::kSrc) + n * desc_.features;
      T* dst = operands.As<T>(Operand::kDst) + n * desc_.features;
      const auto moments = Moments<T>::Of(src, desc_.features);
      const T inverse = InverseDeviation(desc_, moments.variance);
      for (int64_t i = 0; i < desc_.features; ++i) {
        dst[i] = weights[i] * ((src[i] - moments.mean) * inverse) + bias[i];
      }
      if (desc_.phase == Phase::kInference) continue;
      operands.As<T>(Operand::kMean)[n] = moments.mean;
      operands.As<T>(Operand::kVariance)[n] = moments.variance;
    }
    return absl::OkStatus();
  }

  const LayerNormDesc desc_;
};

// With xhat = (src - mean) / sqrt(variance + epsilon), g = weights * diff_dst
// and the means of one row:
//   diff_bias = sum over rows of diff_dst,
//   diff_weights = sum over rows of diff_dst * xhat,
//   diff_src = (g - mean(g) - xhat * mean(g * xhat)) / sqrt(variance + epsilon)
template <typename T>
class LayerNormBackward : public Primitive {
 public:
  explicit LayerNormBackward(const LayerNormDesc& desc) : desc_(desc) {
    for (const Operand operand :
         {Operand::kSrc, Operand::kDiffDst, Operand::kDiffSrc}) {
      Take(operand, RefLayout<T>(desc.src_shape()));
    }
    for (const Operand operand :
         {Operand::kWeights, Operand::kDiffWeights, Operand::kDiffBias}) {
      Take(operand, RefLayout<T>(desc.weights_shape()));
    }
    Take(Operand::kMean, RefLayout<T>(desc.row_shape()));
    Take(Operand::kVariance, RefLayout<T>(desc.row_shape()));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    std::fill_n(operands.As<T>(Operand::kDiffWeights), desc_.features, T{0});
    std::fill_n(operands.As<T>(Operand::kDiffBias), desc_.features, T{0});
    for (int64_t n = 0; n < desc_.batch; ++n) RunRow(operands, n);
    return absl::OkStatus();
  }

  void RunRow(const Operands& operands, int64_t n) const {
    const int64_t first = n * desc_.features;
    const T* src = operands.As<const T>(Operand::kSrc) + first;
    const T* diff_dst = operands.As<const T>(Operand::kDiffDst) + first;
    const T* weights = operands.As<const T>(Operand::kWeights);
    const T mean = operands.As<const T>(Operand::kMean)[n];
    const T inverse =
        InverseDeviation(desc_, operands.As<const T>(Operand::kVariance)[n]);
    T sum = 0, dot = 0;
    for (int64_t i = 0; i < desc_.features; ++i) {
      const T xhat = (src[i] - mean) * inverse;
      operands.As<T>(Operand::kDiffWeights)[i] += diff_dst[i] * xhat;
      operands.As<T>(Operand::kDiffBias)[i] += diff_dst[i];
      sum += weights[i] * diff_dst[i];
      dot += weights[i] * diff_dst[i] * xhat;
    }
    const T features = static_cast<T>(desc_.features);
    T* diff_src = operands.As<T>(Operand::kDiffSrc) + first;
    for (int64_t i = 0; i < desc_.features; ++i) {
      const T xhat = (src[i] - mean) * inverse;
      diff_src[i] = inverse * (weights[i] * diff_dst[i] - sum / features -
                               xhat * dot / features);
    }
  }

  const LayerNormDesc desc_;
};

[[maybe_unused]] const bool kRegistered =
    RegisterRef<LayerNormDesc, LayerNormForward>(Pass::kForward) &&
    RegisterRef<LayerNormDesc, LayerNormBackward>(Pass::kBackward);

}  // namespace
}  // namespace muster
