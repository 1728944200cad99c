#ifndef COMMON_SUMMARY_LANE_PACKER_H_
#define COMMON_SUMMARY_LANE_PACKER_H_

#include <cstddef>
#include <vector>

#include "absl/time/time.h"

namespace muster {

// Spreads spans that overlap over lanes side by side: each comes on the first
// one that is free. In the order of their begins they take the fewest. Those
// of the very same times share a lane.
class LanePacker {
 public:
  // Counted from 0.
  size_t LaneOf(absl::Time begin, absl::Time end) {
    size_t lane = 0;
    while (lane < last_.size() && !Fits(last_[lane], {begin, end})) ++lane;
    if (lane == last_.size()) last_.emplace_back();
    last_[lane] = {begin, end};
    return lane;
  }

 private:
  struct Times {
    absl::Time begin;
    absl::Time end;
  };

  static bool Fits(const Times& last, const Times& next) {
    return last.end <= next.begin ||
           (last.begin == next.begin && last.end == next.end);
  }

  std::vector<Times> last_;
};

}  // namespace muster

#endif  // COMMON_SUMMARY_LANE_PACKER_H_
