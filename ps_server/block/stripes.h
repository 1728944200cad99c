#ifndef PS_SERVER_BLOCK_STRIPES_H_
#define PS_SERVER_BLOCK_STRIPES_H_

#include <cstdint>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "ps_server/block/slice_checks.h"

namespace muster {

// Slices of whole blocks, cut for several threads into stripes: runs of whole
// blocks, one after another, with about equal numbers of elements. Less than
// two blocks' worth is one stripe. A stripe's slices keep the order.
class Stripes {
 public:
  // At most `most` stripes. REQUIRES: whole blocks; `slices` outlives this.
  Stripes(absl::Span<const CheckedSlice> slices, int most);

  Stripes(const Stripes&) = delete;
  Stripes& operator=(const Stripes&) = delete;

  int size() const { return static_cast<int>(stripes_.size()); }
  absl::Span<const CheckedSlice> slices(int i) const;
  // Elements of all slices before those of stripe i.
  int64_t begin(int i) const { return stripes_[i].begin; }
  // The values of stripe i in `data`, those of all slices; shares its memory.
  absl::Cord DataOf(int i, const absl::Cord& data, const Codec* codec) const;

 private:
  struct Stripe {
    // Its slices in cut_.
    size_t first = 0;
    size_t count = 0;
    // Elements of all slices before it.
    int64_t begin = 0;
    int64_t elements = 0;
  };

  // Begins and fills stripes of `target` elements or just above.
  void Cut(absl::Span<const CheckedSlice> slices, int64_t target);

  // The stripes' slices; empty while one stripe has all of them.
  std::vector<CheckedSlice> cut_;
  std::vector<Stripe> stripes_;
  const absl::Span<const CheckedSlice> all_;
};

}  // namespace muster

#endif  // PS_SERVER_BLOCK_STRIPES_H_
