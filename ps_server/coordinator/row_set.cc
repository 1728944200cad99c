#include "ps_server/coordinator/row_set.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace muster {

void RowSet::Add(int64_t first, int64_t rows) {
  num_rows_ += rows;
  int64_t end = first + rows;
  const auto next = ranges_.lower_bound(first);
  assert(next == ranges_.end() || next->first >= end);
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    assert(before->first + before->second <= first);
    if (before->first + before->second == first) {
      first = before->first;
      ranges_.erase(before);
    }
  }
  if (next != ranges_.end() && next->first == end) {
    end += next->second;
    ranges_.erase(next);
  }
  ranges_[first] = end - first;
}

void RowSet::Remove(int64_t first, int64_t rows) {
  assert(Contains(first, rows));
  num_rows_ -= rows;
  const auto range = std::prev(ranges_.upper_bound(first));
  const int64_t begin = range->first;
  const int64_t end = begin + range->second;
  ranges_.erase(range);
  if (begin < first) ranges_[begin] = first - begin;
  if (first + rows < end) ranges_[first + rows] = end - first - rows;
}

void RowSet::Clear() { *this = RowSet(); }

bool RowSet::Contains(int64_t first, int64_t rows) const {
  const auto next = ranges_.upper_bound(first);
  if (next == ranges_.begin()) return false;
  const auto range = std::prev(next);
  return first + rows <= range->first + range->second;
}

int64_t RowSet::NumRowsBelow(int64_t place) const {
  int64_t below = 0;
  for (const auto& [first, rows] : ranges_) {
    if (first >= place) break;
    below += std::min(rows, place - first);
  }
  return below;
}

}  // namespace muster
