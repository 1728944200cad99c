#ifndef PS_SERVER_BLOCK_ELEMENT_RANGES_H_
#define PS_SERVER_BLOCK_ELEMENT_RANGES_H_

#include <cstdint>
#include <map>

namespace muster {

// A set of element numbers kept as disjoint ranges: what of a parameter has
// been loaded. Not thread-safe.
class ElementRanges {
 public:
  // Adds [begin, end); may overlap what is there.
  void Add(int64_t begin, int64_t end);

  // The smallest number >= 0 that is not in the set.
  int64_t FirstMissing() const;

  bool empty() const { return ranges_.empty(); }

 private:
  std::map<int64_t, int64_t> ranges_;  // begin to end, neither touching
};

}  // namespace muster

#endif  // PS_SERVER_BLOCK_ELEMENT_RANGES_H_
