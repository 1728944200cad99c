#include "common/base/readable_number.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace muster {
namespace {

// Beyond it digits would be made up.
constexpr double kLargest = 1e15;

}  // namespace

std::string ReadableNumber(double value, int digits) {
  const double size = std::abs(value);
  // Else %g would write a power of ten.
  if (size >= std::pow(10, digits - 1) && size < kLargest) {
    return absl::StrFormat("%.0f", value);
  }
  return absl::StrFormat("%.*g", digits, WithoutNanSign(value));
}

}  // namespace muster
