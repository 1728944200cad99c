#include "ps_server/block/element_ranges.h"

#include <algorithm>

namespace muster {

void ElementRanges::Add(int64_t begin, int64_t end) {
  if (begin >= end) return;
  auto it = ranges_.upper_bound(begin);
  if (it != ranges_.begin() && std::prev(it)->second >= begin) --it;
  while (it != ranges_.end() && it->first <= end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    it = ranges_.erase(it);
  }
  ranges_.emplace(begin, end);
}

int64_t ElementRanges::FirstMissing() const {
  if (ranges_.empty() || ranges_.begin()->first > 0) return 0;
  return ranges_.begin()->second;
}

}  // namespace muster
