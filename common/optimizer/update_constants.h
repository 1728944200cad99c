// The numbers of one update of a block, for each rule: computed in double
// from t, the rate and the attributes (Formula::ConstantsAt), then narrowed. A
// kernel for a device takes them as they are, so that its bits are the host's;
// it is chosen by their type: another formula has a struct of its own, also
// with the same numbers. Includes only what nvcc reads, too.
#ifndef COMMON_OPTIMIZER_UPDATE_CONSTANTS_H_
#define COMMON_OPTIMIZER_UPDATE_CONSTANTS_H_

#include <cmath>
#include <variant>

namespace muster {

template <typename T>
struct SgdConstants {
  T learning_rate;
};

template <typename T>
struct MomentumConstants {
  T learning_rate;
  T momentum;
  bool nesterov;
};

template <typename T>
struct AdagradConstants {
  T learning_rate;
  T epsilon;
};

template <typename T>
struct RmspropConstants {
  T learning_rate;
  T decay;
  T one_minus_decay;
  T epsilon;
  // 0: there is no slot for it.
  T momentum;
};

// Both rules' constants.
template <typename T>
struct AdamConstants {
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  // lr / (1 - beta1^t).
  T step_size;
  // 1 / sqrt(1 - beta2^t).
  T root_scale;
  T epsilon;
  // 1 - lr * weight_decay; 1 changes nothing, not even a bit.
  T shrinkage;
};

template <typename T>
struct FtrlConstants {
  // 1 / (f * lr), 1 / lr and 1 / lr'.
  T inverse_rate;
  T unscaled_inverse_rate;
  T previous_inverse_rate;
  // f is not 1.
  bool scaled;
  T beta;
  T l1;
  T l2;
};

// The square of a smaller gradient is no normal number: it is 0, or has few
// digits, and the gradient over the root of such squares would be anything.
template <typename T>
inline constexpr T kSmallestSquarable = static_cast<T>(0x1p-511);
template <>
inline constexpr float kSmallestSquarable<float> = 0x1p-63F;

// A gradient for a rule that divides by a root of squares: one that cannot
// be squared is 0 to it. NaN stays NaN.
template <typename T>
T SquarableGradient(T gradient) {
  return std::abs(gradient) < kSmallestSquarable<T> ? T{0} : gradient;
}

// One update's; empty for a rule that devices have no kernel for.
using UpdateConstants =
    std::variant<std::monostate, SgdConstants<float>, MomentumConstants<float>,
                 AdagradConstants<float>, RmspropConstants<float>,
                 AdamConstants<float>, FtrlConstants<float>>;

}  // namespace muster

#endif  // COMMON_OPTIMIZER_UPDATE_CONSTANTS_H_
