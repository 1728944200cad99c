#include "ps_server/gradient_applier.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/cord.h"
#include "common/base/status_macros.h"
#include "common/codec/encoded_values.h"
#include "common/rpc/protocol.h"
#include "ps_server/float_runs.h"

namespace muster {
namespace {

// What is published is written when so much of it was updated: 64 KB of a
// parameter, its gradient and two slots are still in a cache of 512 KB or 1 MB.
constexpr int64_t kPublishedElements = 16384;

// More than any rule has.
constexpr size_t kInlinedSlots = 4;

// Calls body(tensor, block) for each block of the slices.
template <typename Body>
void ForEachBlock(absl::Span<const CheckedSlice> slices, const Body& body) {
  for (const CheckedSlice& slice : slices) {
    const int64_t end = NumBlocks(slice.offset + slice.length);
    for (int64_t block = slice.offset / kBlockElements; block < end; ++block) {
      body(slice.tensor, block);
    }
  }
}

// Not for threads: a snapshot is one for all blocks.
void BeginUpdates(absl::Span<const CheckedSlice> slices,
                  const GradientApplier::Model& model) {
  ForEachBlock(slices, [&model](int tensor, int64_t block) {
    TensorBlocks& blocks = (*model.tensors)[tensor];
    model.snapshot->BeforeWrite(tensor, blocks, block);
    blocks.set_updates(block, blocks.updates(block) + 1);
  });
}

// Applies a run of the gradient from element `begin` of the block on, as the
// update that was begun.
void ApplyRun(const UpdateRule& rule, double rate_factor, TensorBlocks& tensor,
              int64_t block, int64_t begin, absl::Span<const float> run) {
  float* const parameter = tensor.Stream(block, 0) + begin;
  const auto count = static_cast<int64_t>(run.size());
  if (tensor.def().kind() != TRAINABLE) {
    for (int64_t i = 0; i < count; ++i) parameter[i] += run[i];
    return;
  }
  absl::InlinedVector<float*, kInlinedSlots> slots(tensor.Slots(block).begin(),
                                                   tensor.Slots(block).end());
  for (float*& slot : slots) slot += begin;
  rule.Apply({tensor.updates(block), rate_factor}, run.data(), parameter, slots,
             count);
}

// Updates the blocks of one stripe by the values in `data`; writes the new ones
// to `publish_to`, unless null.
void ApplyStripe(absl::Span<const CheckedSlice> slices, const absl::Cord& data,
                 const PushedPart& part, char* publish_to,
                 const GradientApplier::Model& model) {
  FloatRuns gradient(data, part.codec);
  ForEachBlock(slices, [&](int index, int64_t block) {
    TensorBlocks& tensor = (*model.tensors)[index];
    const int64_t elements = tensor.BlockElements(block);
    int64_t published = 0;
    for (int64_t done = 0; done < elements;) {
      const int64_t left = elements - done;
      const absl::Span<const float> run = gradient.Next(
          publish_to == nullptr ? left : std::min(left, kPublishedElements));
      ApplyRun(*model.rule, part.rate_factor, tensor, block, done, run);
      done += static_cast<int64_t>(run.size());
      if (publish_to == nullptr ||
          (done - published < kPublishedElements && done < elements)) {
        continue;
      }
      // Gradients may lie there: these are of no use any more.
      publish_to =
          EncodeTo(part.publish_codec, tensor.Stream(block, 0) + published,
                   done - published, publish_to);
      published = done;
    }
  });
}

std::vector<CheckedSlice> AllOf(const TensorTable& tensors) {
  std::vector<CheckedSlice> slices;
  for (int i = 0; i < tensors.size(); ++i) {
    slices.push_back({i, 0, tensors[i].elements()});
  }
  return slices;
}

}  // namespace

void GradientApplier::ForEach(const Stripes& stripes,
                              absl::FunctionRef<void(int)> body) const {
  if (stripes.size() == 1) return body(0);
  team_->Run(stripes.size(), body);
}

absl::Status GradientApplier::CheckFinitePart(
    absl::string_view what, const PushedPart& part,
    const TensorTable& tensors) const {
  const Stripes stripes(part.slices, threads());
  std::vector<absl::Status> found(stripes.size());
  ForEach(stripes, [&](int i) {
    const absl::Span<const CheckedSlice> slices = stripes.slices(i);
    const absl::Cord data = stripes.DataOf(i, part.data, part.codec);
    found[i] = CheckFinite(what, slices, tensors, data, part.codec);
    if (!found[i].ok()) return;
    found[i] = CheckFiniteSums(what, slices, tensors, data, part.codec);
  });
  for (const absl::Status& status : found) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

void GradientApplier::ApplyPart(const PushedPart& part, const Model& model) {
  BeginUpdates(part.slices, model);
  const Stripes stripes(part.slices, threads());
  ForEach(stripes, [&](int i) {
    char* const publish_to =
        part.publish_to == nullptr
            ? nullptr
            : part.publish_to +
                  EncodedBytes(part.publish_codec, stripes.begin(i));
    ApplyStripe(stripes.slices(i), stripes.DataOf(i, part.data, part.codec),
                part, publish_to, model);
  });
}

void GradientApplier::ApplyToAll(PartApplier::BlockGradient gradient,
                                 const Model& model) {
  const std::vector<CheckedSlice> all = AllOf(*model.tensors);
  BeginUpdates(all, model);
  const Stripes stripes(all, threads());
  gradients_.resize(stripes.size());
  ForEach(stripes, [&](int i) {
    std::vector<float>& values = gradients_[i];
    ForEachBlock(stripes.slices(i), [&](int index, int64_t block) {
      TensorBlocks& tensor = (*model.tensors)[index];
      values.resize(tensor.BlockElements(block));
      gradient(index, block, absl::MakeSpan(values));
      ApplyRun(*model.rule, /*rate_factor=*/1, tensor, block, /*begin=*/0,
               values);
    });
  });
}

}  // namespace muster
