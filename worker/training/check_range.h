// Checks of numbers in a TrainingSpec. Errors: InvalidArgument naming the
// field, what it must be and what was found.
#ifndef WORKER_TRAINING_CHECK_RANGE_H_
#define WORKER_TRAINING_CHECK_RANGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/max_count.h"

namespace muster {

template <typename T>
absl::Status CheckRange(absl::string_view field, T value, T min, T max,
                        absl::string_view wanted) {
  // Written so that NaN fails.
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be ", wanted, ", found ", value));
}

inline absl::Status CheckNotNegative(absl::string_view field, int64_t value) {
  return CheckRange<int64_t>(field, value, 0, INT64_MAX, "0 or more");
}

inline absl::Status CheckCount(absl::string_view field, int64_t value) {
  return CheckRange<int64_t>(field, value, 0, kMaxCount,
                             absl::StrCat("from 0 (not set) to ", kMaxCount));
}

inline absl::Status CheckFiniteNotNegative(absl::string_view field,
                                           double value) {
  return CheckRange<double>(field, value, 0, 1e15, "0 or more and finite");
}

}  // namespace muster

#endif  // WORKER_TRAINING_CHECK_RANGE_H_
