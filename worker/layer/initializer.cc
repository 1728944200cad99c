#include "worker/layer/initializer.h"

#include <cassert>
#include <cmath>

#include "worker/layer/counter_random.h"

namespace muster {
namespace {

using Kind = Initializer::Kind;

struct NamedKind {
  const char* name;
  Kind kind;
};

constexpr NamedKind kKinds[] = {
    {"glorot_uniform", Kind::kGlorotUniform},
    {"he_normal", Kind::kHeNormal},
    {"zeros", Kind::kZeros},
    {"ones", Kind::kOnes},
    {"constant", Kind::kConstant},
};

struct Fans {
  double in = 1;
  double out = 1;
};

Fans FansOf(const Shape& shape, int64_t groups) {
  double window = 1;
  for (int i = 2; i < shape.rank(); ++i) window *= shape.dim(i);
  const double out = shape.rank() > 0 ? shape.dim(0) : 1;
  const double in = shape.rank() > 1 ? shape.dim(1) : out;
  return {in * window, out / static_cast<double>(groups) * window};
}

// Uniform in (-1, 1), symmetric, a multiple of 2^-53: exact.
double SignedUniform(const CounterRandom& random, uint64_t i) {
  const int64_t centered =
      2 * static_cast<int64_t>(random.Bits(i) >> 11) - ((int64_t{1} << 53) - 1);
  return std::ldexp(static_cast<double>(centered), -53);
}

// The sum of twelve uniforms less six: mean 0, variance 1, at most 6. Near
// enough to normal for a first value, and exact without a libm whose log and
// cos differ between machines.
double NearNormal(const CounterRandom& random, uint64_t i) {
  constexpr int kTerms = 12;
  int64_t sum = 0;
  for (uint64_t term = 0; term < kTerms; ++term) {
    sum += static_cast<int64_t>(random.Bits(i * kTerms + term) >> 16);
  }
  return std::ldexp(static_cast<double>(sum - (int64_t{6} << 48)), -48);
}

template <typename T>
void FillConstant(double value, absl::Span<T> values) {
  for (T& v : values) v = static_cast<T>(value);
}

template <typename T>
void Fill(const Initializer& initializer, uint64_t seed, absl::string_view name,
          const Shape& shape, absl::Span<T> values) {
  assert(static_cast<int64_t>(values.size()) == shape.num_elements());
  const CounterRandom random(seed, name);
  const Fans fans = FansOf(shape, initializer.groups);
  switch (initializer.kind) {
    case Kind::kGlorotUniform: {
      const double limit = std::sqrt(6.0 / (fans.in + fans.out));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<T>(limit * SignedUniform(random, i));
      }
      return;
    }
    case Kind::kHeNormal: {
      const double deviation = std::sqrt(2.0 / fans.in);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<T>(deviation * NearNormal(random, i));
      }
      return;
    }
    case Kind::kZeros:
      return FillConstant(0, values);
    case Kind::kOnes:
      return FillConstant(1, values);
    case Kind::kConstant:
      return FillConstant(initializer.value, values);
  }
}

}  // namespace

std::vector<std::string> InitializerNames() {
  std::vector<std::string> names;
  for (const NamedKind& known : kKinds) names.emplace_back(known.name);
  return names;
}

Initializer MakeInitializer(absl::string_view name, double value) {
  for (const NamedKind& known : kKinds) {
    if (name == known.name) return {known.kind, value};
  }
  assert(false);
  return {};
}

void FillInitialValues(const Initializer& initializer, uint64_t seed,
                       absl::string_view name, const Shape& shape,
                       absl::Span<float> values) {
  Fill(initializer, seed, name, shape, values);
}

void FillInitialValues(const Initializer& initializer, uint64_t seed,
                       absl::string_view name, const Shape& shape,
                       absl::Span<double> values) {
  Fill(initializer, seed, name, shape, values);
}

}  // namespace muster
