#ifndef COMMON_RPC_CLOCK_OFFSET_H_
#define COMMON_RPC_CLOCK_OFFSET_H_

#include <cstdint>

#include "absl/time/time.h"

namespace muster {

// What is to be added to the own clock for that of a ps task, from looks at it
// (ProfileRequest::READ_CLOCK). The quickest look decides: it is wrong by half
// its time at most, however unequal the two ways were. A value.
class ClockOffset {
 public:
  // As many that a quick one is among them.
  static constexpr int kLooks = 8;

  // At `asked` of the own clock the look was sent, at `answered` its answer,
  // `there_us`, had come.
  void Add(absl::Time asked, int64_t there_us, absl::Time answered) {
    const absl::Duration half = (answered - asked) / 2;
    if (half >= half_) return;
    half_ = half;
    offset_us_ = there_us - absl::ToUnixMicros(asked + half);
  }

  // Nothing is known before the first look.
  bool is_known() const { return half_ < absl::InfiniteDuration(); }
  int64_t offset_us() const { return offset_us_; }
  // The most that it is wrong by; 2 for the fractions that are lost.
  int64_t error_us() const { return absl::ToInt64Microseconds(half_) + 2; }

 private:
  absl::Duration half_ = absl::InfiniteDuration();
  int64_t offset_us_ = 0;
};

}  // namespace muster

#endif  // COMMON_RPC_CLOCK_OFFSET_H_
