#ifndef WORKER_TOWER_GRADIENT_CLIPPER_H_
#define WORKER_TOWER_GRADIENT_CLIPPER_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/training.pb.h"

namespace muster {

// Limits the gradients of one step of one worker, in place, between the
// backward pass and the push. With |g| the 2-norm and c the limit:
//
//   by_value        each element g to max(-c, min(g, c)).
//                   torch.nn.utils.clip_grad_value_, tf.clip_by_value.
//   by_norm         each tensor g to g * c / max(|g|, c). tf.clip_by_norm.
//   by_global_norm  all tensors as one vector g, to g * c / max(|g|, c): the
//                   direction stays. Pascanu, Mikolov and Bengio, "On the
//                   difficulty of training recurrent neural networks", 2013.
//                   tf.clip_by_global_norm; torch.nn.utils.clip_grad_norm_
//                   divides by |g| + 1e-6.
//
// by_global_norm needs the last gradient of the backward pass before it can
// change the first, so that no push may begin earlier. In sync replication a
// worker clips its own gradient, and the mean is taken of clipped ones.
//
// A gradient within the limit keeps its bits. Norms are sums in double. NaN
// stays NaN, and in a norm spreads to all that the norm is of. A value type;
// const methods are thread-safe.
class GradientClipper {
 public:
  // `spec` without a limit: Clip changes nothing. Errors: InvalidArgument
  // naming the field for a limit that is not above 0 and a normal float.
  static absl::StatusOr<GradientClipper> Create(const ClippingSpec& spec);

  // Whether there is a limit.
  bool clips() const { return kind_ != ClippingSpec::LIMIT_NOT_SET; }

  // `gradients`: the trainable tensors' of one step, each once.
  void Clip(absl::Span<const absl::Span<float>> gradients) const;

 private:
  GradientClipper(ClippingSpec::LimitCase kind, double limit)
      : kind_(kind), limit_(limit) {}

  ClippingSpec::LimitCase kind_;
  double limit_;
};

}  // namespace muster

#endif  // WORKER_TOWER_GRADIENT_CLIPPER_H_
