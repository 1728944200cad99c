#ifndef COMMON_BASE_READABLE_NUMBER_H_
#define COMMON_BASE_READABLE_NUMBER_H_

#include <cmath>
#include <string>

namespace muster {

// A number for people: `digits` significant digits, but all of its whole part,
// and no power of ten from 0.0001 to 10^15: "1583", "15.8", "0.00123".
std::string ReadableNumber(double value, int digits);

// NaN, of whatever sign, as one that printf writes as "nan" and not "-nan".
inline double WithoutNanSign(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

}  // namespace muster

#endif  // COMMON_BASE_READABLE_NUMBER_H_
