#include "worker/tower/gradient_clipper.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/tower/sum_of_squares.h"

namespace muster {
namespace {

// Runs of a fixed length are what the compiler makes vectors of.
template <typename Function>
void ChangeElements(absl::Span<float> values, const Function& function) {
  constexpr size_t kLanes = 16;
  for (; values.size() >= kLanes; values.remove_prefix(kLanes)) {
    for (size_t i = 0; i < kLanes; ++i) values[i] = function(values[i]);
  }
  for (float& value : values) value = function(value);
}

void ClipValues(float limit, absl::Span<float> values) {
  // In this order NaN stays NaN.
  ChangeElements(values, [limit](float value) {
    return std::min(std::max(value, -limit), limit);
  });
}

// 1 / shrinkage may be more than a float holds, so that the product is taken
// in double.
void Scale(double shrinkage, absl::Span<float> values) {
  ChangeElements(values, [shrinkage](float value) {
    return static_cast<float>(value * shrinkage);
  });
}

void ClipTogether(double limit, absl::Span<const absl::Span<float>> gradients) {
  double sum = 0;
  for (const absl::Span<float> gradient : gradients) {
    sum += SumOfSquares(gradient);
  }
  const double norm = std::sqrt(sum);
  if (norm <= limit) return;
  for (const absl::Span<float> gradient : gradients) {
    Scale(limit / norm, gradient);
  }
}

double LimitOf(const ClippingSpec& spec) {
  switch (spec.limit_case()) {
    case ClippingSpec::kByValue:
      return spec.by_value();
    case ClippingSpec::kByNorm:
      return spec.by_norm();
    case ClippingSpec::kByGlobalNorm:
      return spec.by_global_norm();
    case ClippingSpec::LIMIT_NOT_SET:
      break;
  }
  return 0;
}

const char* FieldOf(ClippingSpec::LimitCase kind) {
  switch (kind) {
    case ClippingSpec::kByValue:
      return "by_value";
    case ClippingSpec::kByNorm:
      return "by_norm";
    default:
      return "by_global_norm";
  }
}

}  // namespace

absl::StatusOr<GradientClipper> GradientClipper::Create(
    const ClippingSpec& spec) {
  const ClippingSpec::LimitCase kind = spec.limit_case();
  const double limit = LimitOf(spec);
  using Float = std::numeric_limits<float>;
  if (kind == ClippingSpec::LIMIT_NOT_SET ||
      (limit >= Float::min() && limit <= Float::max())) {
    return GradientClipper(kind, limit);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "gradient.clip.", FieldOf(kind), " must be above 0 and finite (from ",
      Float::min(), " to ", Float::max(), "), found ", limit,
      "; without a gradient.clip nothing is clipped"));
}

void GradientClipper::Clip(
    absl::Span<const absl::Span<float>> gradients) const {
  switch (kind_) {
    case ClippingSpec::kByValue:
      for (const absl::Span<float> gradient : gradients) {
        ClipValues(static_cast<float>(limit_), gradient);
      }
      return;
    case ClippingSpec::kByNorm:
      for (const absl::Span<float>& gradient : gradients) {
        ClipTogether(limit_, absl::MakeConstSpan(&gradient, 1));
      }
      return;
    case ClippingSpec::kByGlobalNorm:
      ClipTogether(limit_, gradients);
      return;
    case ClippingSpec::LIMIT_NOT_SET:
      return;
  }
}

}  // namespace muster
