#include "ps_server/shard/stored_gradient.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/protocol.h"
#include "ps_server/block/float_runs.h"

namespace muster {
namespace {

// Calls visit(tensor, block, elements) for each block of the slices, in order.
template <typename Visit>
void ForEachBlock(const std::vector<CheckedSlice>& slices,
                  const TensorTable& tensors, const Visit& visit) {
  for (const CheckedSlice& slice : slices) {
    const int64_t end = NumBlocks(slice.offset + slice.length);
    for (int64_t block = slice.offset / kBlockElements; block < end; ++block) {
      visit(slice.tensor, block, tensors[slice.tensor].BlockElements(block));
    }
  }
}

// Calls use(run, at) for the values of one block.
template <typename Use>
void ForEachRun(const absl::Cord& data, const Codec* codec, int64_t offset,
                int64_t elements, const Use& use) {
  const absl::Cord block = data.Subcord(offset, EncodedBytes(codec, elements));
  FloatRuns runs(block, codec);
  for (int64_t done = 0; done < elements;) {
    const absl::Span<const float> run = runs.Next(elements - done);
    use(run, done);
    done += static_cast<int64_t>(run.size());
  }
}

// A count that the compiler knows, so that it makes vector code of the loop.
constexpr size_t kRun = 64;

void AddRun(absl::Span<const float> from, float* __restrict to) {
  size_t i = 0;
  for (; i + kRun <= from.size(); i += kRun) {
    const float* __restrict const run = from.data() + i;
    for (size_t j = 0; j < kRun; ++j) to[i + j] += run[j];
  }
  for (; i < from.size(); ++i) to[i] += from[i];
}

}  // namespace

BlockNumbers::BlockNumbers(const TensorTable& tensors) {
  first_.reserve(tensors.size() + 1);
  int64_t total = 0;
  for (int i = 0; i < tensors.size(); ++i) {
    first_.push_back(total);
    if (tensors[i].def().kind() != FROZEN) total += tensors[i].num_blocks();
  }
  first_.push_back(total);
}

StoredGradient::StoredGradient(const PushedPart& part, int64_t blocks)
    : sender_(part.sender),
      step_(part.step),
      parts_(part.parts),
      rate_factor_(part.rate_factor),
      places_(blocks) {}

absl::Status StoredGradient::CheckPart(absl::string_view what,
                                       const PushedPart& part,
                                       const BlockNumbers& numbers,
                                       const TensorTable& tensors) const {
  if (part.rate_factor != rate_factor_) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": its factor of the learning rate is ", part.rate_factor,
        ", the one of the step's other parts ", rate_factor_));
  }
  int64_t blocks = blocks_held_;
  const std::string* twice = nullptr;
  ForEachBlock(part.slices, tensors,
               [&](int tensor, int64_t block, int64_t /*elements*/) {
                 ++blocks;
                 if (places_[numbers.Of(tensor, block)].held >= 0) {
                   twice = &tensors[tensor].def().name();
                 }
               });
  if (twice != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": an earlier part of the step has a block of '",
                     *twice, "' already; a mean needs each once"));
  }
  if (parts_held() + 1 < parts_ || blocks == numbers.total()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": the ", parts_, " parts of the step have ", blocks, " of the ",
      numbers.total(), " blocks of this shard; a mean needs all of them"));
}

void StoredGradient::Add(PushedPart part, const BlockNumbers& numbers,
                         const TensorTable& tensors) {
  const auto index = static_cast<int32_t>(held_.size());
  int64_t offset = 0;
  ForEachBlock(part.slices, tensors,
               [&](int tensor, int64_t block, int64_t elements) {
                 places_[numbers.Of(tensor, block)] = {index, offset};
                 offset += EncodedBytes(part.codec, elements);
                 ++blocks_held_;
               });
  bytes_ += part.bytes();
  for (CheckedRows& run : part.rows) rows_.push_back(std::move(run));
  held_.push_back({std::move(part.data), part.codec});
}

void StoredGradient::CopyTo(int64_t block, absl::Span<float> sum) const {
  const Place& place = places_[block];
  const Held& held = held_[place.held];
  ForEachRun(held.data, held.codec, place.offset,
             static_cast<int64_t>(sum.size()),
             [sum](absl::Span<const float> run, int64_t at) {
               std::copy(run.begin(), run.end(), sum.begin() + at);
             });
}

void StoredGradient::AddTo(int64_t block, absl::Span<float> sum) const {
  const Place& place = places_[block];
  const Held& held = held_[place.held];
  ForEachRun(held.data, held.codec, place.offset,
             static_cast<int64_t>(sum.size()),
             [sum](absl::Span<const float> run, int64_t at) {
               AddRun(run, sum.data() + at);
             });
}

}  // namespace muster
