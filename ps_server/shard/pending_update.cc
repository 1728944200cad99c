#include "ps_server/shard/pending_update.h"

#include <algorithm>
#include <utility>

#include "common/rpc/protocol.h"

namespace muster {
namespace {

// A count that the compiler knows, so that it makes vector code of the loop.
constexpr size_t kRun = 64;

void Multiply(absl::Span<float> values, float factor) {
  size_t i = 0;
  for (; i + kRun <= values.size(); i += kRun) {
    float* const run = values.data() + i;
    for (size_t j = 0; j < kRun; ++j) run[j] *= factor;
  }
  for (; i < values.size(); ++i) values[i] *= factor;
}

}  // namespace

PendingUpdate::PendingUpdate(std::vector<StoredGradient> gradients,
                             double rate_factor, const TensorTable& tensors)
    : gradients_(std::move(gradients)),
      rate_factor_(rate_factor),
      numbers_(tensors),
      is_left_(numbers_.total(), true),
      blocks_left_(numbers_.total()) {}

void PendingUpdate::Claim(int tensor, int64_t first, int64_t end,
                          const TensorTable& tensors,
                          std::vector<CheckedSlice>* claimed) {
  for (int64_t block = first; block < end; ++block) {
    const int64_t number = numbers_.Of(tensor, block);
    if (!is_left_[number]) continue;
    is_left_[number] = false;
    --blocks_left_;
    const CheckedSlice whole = {tensor, block * kBlockElements,
                                tensors[tensor].BlockElements(block)};
    const bool goes_on =
        !claimed->empty() && claimed->back().tensor == tensor &&
        claimed->back().offset + claimed->back().length == whole.offset;
    if (goes_on) {
      claimed->back().length += whole.length;
    } else {
      claimed->push_back(whole);
    }
  }
}

void PendingUpdate::MakeIn(absl::Span<const CheckedSlice> slices,
                           const TensorTable& tensors, PartApplier& applier) {
  if (is_made()) return;
  std::vector<CheckedSlice> claimed;
  for (const CheckedSlice& slice : slices) {
    if (tensors[slice.tensor].def().kind() == FROZEN) continue;
    Claim(slice.tensor, slice.offset / kBlockElements,
          NumBlocks(slice.offset + slice.length), tensors, &claimed);
  }
  if (claimed.empty()) return;
  applier.ApplyToBlocks(
      claimed, rate_factor_,
      [this](int tensor, int64_t block, absl::Span<float> mean) {
        WriteMean(numbers_.Of(tensor, block), mean);
      });
  if (is_made()) gradients_.clear();
}

void PendingUpdate::MakeAll(const TensorTable& tensors, PartApplier& applier) {
  if (is_made()) return;
  std::vector<CheckedSlice> all;
  for (int i = 0; i < tensors.size(); ++i) {
    all.push_back({i, 0, tensors[i].elements()});
  }
  MakeIn(all, tensors, applier);
}

void PendingUpdate::WriteMean(int64_t number, absl::Span<float> mean) const {
  gradients_[0].CopyTo(number, mean);
  for (size_t i = 1; i < gradients_.size(); ++i) {
    gradients_[i].AddTo(number, mean);
  }
  const size_t count = gradients_.size();
  if (count == 1) return;
  const auto divisor = static_cast<float>(count);
  if ((count & (count - 1)) == 0) {
    // The same bits, several times faster.
    Multiply(mean, 1 / divisor);
  } else {
    for (float& value : mean) value /= divisor;
  }
}

}  // namespace muster
