#ifndef COMMON_CODEC_ERROR_FEEDBACK_H_
#define COMMON_CODEC_ERROR_FEEDBACK_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/codec/codec.h"

namespace muster {

// A codec that forgets nothing: what it takes from one gradient, the residual,
// is added to the next one (Seide et al., 1-Bit Stochastic Gradient Descent,
// 2014). Its bytes are those of the codec that it wraps; who decodes them knows
// nothing of it.
//
//   ErrorFeedback feedback(codec);
//   feedback.Clear(n);
//   feedback.Encode(0, gradient, n, bytes);   // gradient + residual
//   ... push the bytes ...
//   feedback.Keep(0, n);             // applied: the residual is what was lost
//   feedback.TakeBack(0, n, bytes);  // or dropped: all of it is the residual
//   // or neither: the push failed, and the gradient will be computed again
//
// For each value, and up to the rounding of the two float32 additions, what was
// applied + residual = the sum of the gradients whose push was not a failure.
// Exact where sums of gradients are exact in float32 (small whole numbers).
// An infinity or NaN leaves no residual. One thread at a time.
class ErrorFeedback {
 public:
  // `codec` is not null and outlives this.
  explicit ErrorFeedback(const Codec* codec) : codec_(*codec) {}

  // From here on there are `values` values, all with residual 0.
  void Clear(int64_t values);

  // Encodes the gradient of values `begin` to `begin` + `n`, with their
  // residual added, to `n` encoded values. The residual changes with Keep or
  // TakeBack only: encoded again without one, the same gradient has the same
  // bytes.
  void Encode(int64_t begin, int64_t n, const float* gradient, char* encoded);

  // Lets the last encoding of these values count: they owe what it lacked.
  void Keep(int64_t begin, int64_t n);

  // It does not, nor will it be sent again: they owe it, too. `encoded` is what
  // Encode wrote for them.
  void TakeBack(int64_t begin, int64_t n, const char* encoded);

  int64_t values() const { return static_cast<int64_t>(residual_.size()); }
  absl::Span<const float> residual() const { return residual_; }

 private:
  const Codec& codec_;
  std::vector<float> residual_;
  // The loss of each value in the last Encode.
  std::vector<float> lost_;
};

}  // namespace muster

#endif  // COMMON_CODEC_ERROR_FEEDBACK_H_
