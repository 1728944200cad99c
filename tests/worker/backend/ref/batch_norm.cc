#include <algorithm>
#include <cmath>

#include "tests/worker/backend/ref/ref_primitive.h"

namespace muster {
namespace {

// Calls visit(index) for every element of one channel.
template <typename Visit>
void ForEachInChannel(const BatchNormDesc& d, int64_t channel, Visit visit) {
  const int64_t area = d.height * d.width;
  for (int64_t n = 0; n < d.batch; ++n)
    for (int64_t i = 0; i < area; ++i)
      visit((n * d.channels + channel) * area + i);
}

template <typename T>
T ChannelSize(const BatchNormDesc& d) {
  return static_cast<T>(d.batch * d.height * d.width);
}

template <typename T>
class BatchNormForward : public Primitive {
 public:
  explicit BatchNormForward(const BatchNormDesc& desc) : desc_(desc) {
    Take(Operand::kSrc, RefLayout<T>(desc.src_shape()));
    for (const Operand operand : {Operand::kWeights, Operand::kBias,
                                  Operand::kMean, Operand::kVariance}) {
      Take(operand, RefLayout<T>(desc.channel_shape()));
    }
    Take(Operand::kDst, RefLayout<T>(desc.src_shape()));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* src = operands.As<const T>(Operand::kSrc);
    const T* weights = operands.As<const T>(Operand::kWeights);
    const T* bias = operands.As<const T>(Operand::kBias);
    T* mean = operands.As<T>(Operand::kMean);
    T* variance = operands.As<T>(Operand::kVariance);
    T* dst = operands.As<T>(Operand::kDst);
    for (int64_t c = 0; c < desc_.channels; ++c) {
      if (desc_.phase == Phase::kTraining) {
        Measure(src, c, &mean[c], &variance[c]);
      }
      const T scale =
          weights[c] / std::sqrt(variance[c] + static_cast<T>(desc_.epsilon));
      ForEachInChannel(desc_, c, [&](int64_t i) {
        dst[i] = (src[i] - mean[c]) * scale + bias[c];
      });
    }
    return absl::OkStatus();
  }

  void Measure(const T* src, int64_t channel, T* mean, T* variance) const {
    const T size = ChannelSize<T>(desc_);
    T sum = 0;
    ForEachInChannel(desc_, channel, [&](int64_t i) { sum += src[i]; });
    *mean = sum / size;
    T squares = 0;
    ForEachInChannel(desc_, channel, [&](int64_t i) {
      squares += (src[i] - *mean) * (src[i] - *mean);
    });
    *variance = squares / size;
  }

  const BatchNormDesc desc_;
};

// With xhat = (src - mean) / sqrt(variance + epsilon) and m elements a channel:
//   diff_bias = sum(diff_dst), diff_weights = sum(diff_dst * xhat),
//   diff_src = weights / sqrt(variance + epsilon)
//     * (diff_dst - diff_bias / m - xhat * diff_weights / m)
// (Ioffe and Szegedy, "Batch normalization", 2015, section 3).
template <typename T>
class BatchNormBackward : public Primitive {
 public:
  explicit BatchNormBackward(const BatchNormDesc& desc) : desc_(desc) {
    Take(Operand::kSrc, RefLayout<T>(desc.src_shape()));
    Take(Operand::kDiffDst, RefLayout<T>(desc.src_shape()));
    for (const Operand operand :
         {Operand::kWeights, Operand::kMean, Operand::kVariance,
          Operand::kDiffWeights, Operand::kDiffBias}) {
      Take(operand, RefLayout<T>(desc.channel_shape()));
    }
    Take(Operand::kDiffSrc, RefLayout<T>(desc.src_shape()));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* src = operands.As<const T>(Operand::kSrc);
    const T* weights = operands.As<const T>(Operand::kWeights);
    const T* mean = operands.As<const T>(Operand::kMean);
    const T* variance = operands.As<const T>(Operand::kVariance);
    const T* diff_dst = operands.As<const T>(Operand::kDiffDst);
    T* diff_src = operands.As<T>(Operand::kDiffSrc);
    const T m = ChannelSize<T>(desc_);
    for (int64_t c = 0; c < desc_.channels; ++c) {
      const T inverse =
          1 / std::sqrt(variance[c] + static_cast<T>(desc_.epsilon));
      T sum = 0, dot = 0;
      ForEachInChannel(desc_, c, [&](int64_t i) {
        sum += diff_dst[i];
        dot += diff_dst[i] * (src[i] - mean[c]) * inverse;
      });
      operands.As<T>(Operand::kDiffBias)[c] = sum;
      operands.As<T>(Operand::kDiffWeights)[c] = dot;
      ForEachInChannel(desc_, c, [&](int64_t i) {
        const T xhat = (src[i] - mean[c]) * inverse;
        diff_src[i] =
            weights[c] * inverse * (diff_dst[i] - sum / m - xhat * dot / m);
      });
    }
    return absl::OkStatus();
  }

  const BatchNormDesc desc_;
};

[[maybe_unused]] const bool kRegistered =
    RegisterRef<BatchNormDesc, BatchNormForward>(Pass::kForward) &&
    RegisterRef<BatchNormDesc, BatchNormBackward>(Pass::kBackward);

}  // namespace
}  // namespace muster
