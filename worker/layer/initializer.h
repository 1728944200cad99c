#ifndef WORKER_LAYER_INITIALIZER_H_
#define WORKER_LAYER_INITIALIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/shape.h"

namespace muster {

// How a parameter gets its first values. A value type.
//
//   glorot_uniform  uniform in +-sqrt(6 / (fan_in + fan_out)); Glorot and
//                   Bengio, "Understanding the difficulty of training deep
//                   feedforward neural networks", 2010
//   he_normal       standard deviation sqrt(2 / fan_in); He et al., "Delving
//                   deep into rectifiers", 2015
//   zeros, ones, constant
//
// fan_in and fan_out are the inputs and outputs of one element: of weights
// [O, I] they are I and O, of [O, I, KH, KW] I*KH*KW and O*KH*KW; with groups,
// whose weights have but their own inputs as I, O / groups in the place of O.
struct Initializer {
  enum class Kind { kGlorotUniform, kHeNormal, kZeros, kOnes, kConstant };

  Kind kind = Kind::kZeros;
  // kConstant's.
  double value = 0;
  // Of the convolution whose weights they are.
  int64_t groups = 1;
};

// The names that an `initializer` attribute may have.
std::vector<std::string> InitializerNames();

// REQUIRES: `name` is one of InitializerNames().
Initializer MakeInitializer(absl::string_view name, double value);

// Writes the first values of the parameter called `name` into `values`.
// Element i is a function of (seed, name, i) alone, made of integer operations,
// correctly rounded products and one square root: the same on every machine,
// whatever else is initialized and in which order.
// REQUIRES: values.size() == shape.num_elements().
void FillInitialValues(const Initializer& initializer, uint64_t seed,
                       absl::string_view name, const Shape& shape,
                       absl::Span<float> values);
// The same numbers before they are rounded to float.
void FillInitialValues(const Initializer& initializer, uint64_t seed,
                       absl::string_view name, const Shape& shape,
                       absl::Span<double> values);

}  // namespace muster

#endif  // WORKER_LAYER_INITIALIZER_H_
