#include "ps_server/block/stripes.h"

#include <algorithm>

#include "common/rpc/protocol.h"
#include "ps_server/block/tensor_blocks.h"

namespace muster {

Stripes::Stripes(absl::Span<const CheckedSlice> slices, int most)
    : all_(slices) {
  const int64_t elements = SliceElements(slices);
  const int64_t count = std::min<int64_t>(most, elements / kBlockElements);
  if (count > 1) {
    Cut(slices, (elements + count - 1) / count);
  } else {
    stripes_.push_back({0, slices.size(), 0, elements});
  }
}

void Stripes::Cut(absl::Span<const CheckedSlice> slices, int64_t target) {
  stripes_.emplace_back();
  for (CheckedSlice left : slices) {
    while (left.length > 0) {
      if (stripes_.back().elements >= target) {
        const Stripe& full = stripes_.back();
        stripes_.push_back({cut_.size(), 0, full.begin + full.elements, 0});
      }
      Stripe& stripe = stripes_.back();
      // The end of a tensor may be a shorter block.
      const int64_t length = std::min(
          left.length, NumBlocks(target - stripe.elements) * kBlockElements);
      cut_.push_back({left.tensor, left.offset, length});
      ++stripe.count;
      stripe.elements += length;
      left.offset += length;
      left.length -= length;
    }
  }
}

absl::Span<const CheckedSlice> Stripes::slices(int i) const {
  if (size() == 1) return all_;
  return absl::MakeConstSpan(cut_).subspan(stripes_[i].first,
                                           stripes_[i].count);
}

absl::Cord Stripes::DataOf(int i, const absl::Cord& data,
                           const Codec* codec) const {
  if (size() == 1) return data;
  return data.Subcord(EncodedBytes(codec, stripes_[i].begin),
                      EncodedBytes(codec, stripes_[i].elements));
}

}  // namespace muster
