#include "ps_server/shard/gradient_applier.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/cord.h"
#include "common/base/status_macros.h"
#include "common/codec/encoded_values.h"
#include "common/codec/value_format.h"
#include "common/rpc/protocol.h"
#include "ps_server/block/float_runs.h"

namespace muster {
namespace {

// The number of values that are written at once in a codec's form, when they
// were updated: 64 KB of a parameter are still in a cache of 512 KB or 1 MB.
constexpr int64_t kEncodedElements = 16384;

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

// Counts the updates of the blocks, after which each is to be saved (for the
// snapshot) and then changed. Not for threads: a snapshot is one for all
// blocks.
void BeginUpdates(absl::Span<const CheckedSlice> slices,
                  const GradientApplier::Model& model) {
  ForEachBlock(slices, [&model](int tensor, int64_t block) {
    TensorBlocks& blocks = (*model.tensors)[tensor];
    model.snapshot->Reserve(tensor, blocks, block);
    blocks.set_updates(block, blocks.updates(block) + 1);
  });
}

// Where an update changes a block: from element `begin` on.
struct Place {
  TensorBlocks* tensor = nullptr;
  int64_t block = 0;
  int64_t begin = 0;
  // Where the new values are also written; null: nowhere. The gradient may lie
  // there: when it was used it is of no use any more.
  float* publish_to = nullptr;

  float* parameter() const { return tensor->Stream(block, 0) + begin; }
};

// Adds a run of deltas to a state tensor, which decays first.
void AddRun(const Place& place, absl::Span<const float> run) {
  float* const parameter = place.parameter();
  const float decay = place.tensor->def().decay();
  for (size_t i = 0; i < run.size(); ++i) {
    parameter[i] = DecayAndAdd(parameter[i], decay, run[i]);
  }
  if (place.publish_to == nullptr) return;
  std::memcpy(place.publish_to, parameter, run.size() * sizeof(float));
}

// Applies a run of the gradient of a trainable tensor, as the update that was
// begun.
void ApplyRun(const UpdateRule& rule, double rate_factor, const Place& place,
              const EncodedRun& run) {
  const absl::Span<float* const> whole = place.tensor->Slots(place.block);
  absl::InlinedVector<float*, kInlinedSlots> slots(whole.begin(), whole.end());
  for (float*& slot : slots) slot += place.begin;
  rule.ApplyEncoded(
      {place.tensor->updates(place.block), rate_factor},
      {run.values, place.parameter(), slots, run.size, place.publish_to});
}

// Applies the next run of at most `max_elements` of the gradient; returns how
// many it had.
int64_t ApplyNext(const UpdateRule& rule, double rate_factor,
                  const Place& place, int64_t max_elements,
                  FloatRuns* gradient) {
  if (place.tensor->def().kind() == TRAINABLE) {
    const EncodedRun run = gradient->NextEncoded(max_elements);
    ApplyRun(rule, rate_factor, place, run);
    return run.size;
  }
  const absl::Span<const float> run = gradient->Next(max_elements);
  AddRun(place, run);
  return static_cast<int64_t>(run.size());
}

// Updates the blocks of one stripe by the values in `data`; writes the new ones
// to `publish_to`, unless null, where the data may lie.
void ApplyStripe(absl::Span<const CheckedSlice> slices, const absl::Cord& data,
                 const PushedPart& part, char* publish_to,
                 const GradientApplier::Model& model) {
  FloatRuns gradient(data, part.codec);
  const bool encodes = publish_to != nullptr && part.publish_codec != nullptr;
  ForEachBlock(slices, [&](int index, int64_t block) {
    TensorBlocks& tensor = (*model.tensors)[index];
    model.snapshot->Save(index, tensor, block);
    const int64_t elements = tensor.BlockElements(block);
    for (int64_t done = 0; done < elements;) {
      Place place = {&tensor, block, done};
      int64_t most = elements - done;
      if (encodes) {
        most = std::min(most, kEncodedElements);
      } else {
        place.publish_to = reinterpret_cast<float*>(publish_to);
      }
      const int64_t count =
          ApplyNext(*model.rule, part.rate_factor, place, most, &gradient);
      done += count;
      if (publish_to == nullptr) continue;
      if (encodes) {
        EncodeTo(part.publish_codec, place.parameter(), count, publish_to);
      }
      publish_to += EncodedBytes(part.publish_codec, count);
    }
  });
}

// Has the updates made that were begun.
void ApplyOnDevice(const PushedPart& part,
                   const GradientApplier::Model& model) {
  ForEachBlock(part.slices, [&](int index, int64_t block) {
    const TensorBlocks& tensor = (*model.tensors)[index];
    model.snapshot->Save(index, tensor, block);
    const int64_t begin = block * kBlockElements;
    model.holder->Update(index, begin, begin + tensor.BlockElements(block),
                         {tensor.updates(block), part.rate_factor});
  });
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
    if (!part.is_finite) {
      found[i] = CheckFinite(what, slices, tensors, data, part.codec);
    }
    if (!found[i].ok()) return;
    found[i] = CheckFiniteSums(what, slices, tensors, data, part.codec);
  });
  for (const absl::Status& status : found) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

void GradientApplier::ApplyPart(const PushedPart& part, const Model& model) {
  BeginUpdates(part.slices, model);
  if (model.holder != nullptr) return ApplyOnDevice(part, model);
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

void GradientApplier::ApplyToBlocks(absl::Span<const CheckedSlice> slices,
                                    double rate_factor,
                                    PartApplier::BlockGradient gradient,
                                    const Model& model) {
  BeginUpdates(slices, model);
  const Stripes stripes(slices, threads());
  gradients_.resize(stripes.size());
  ForEach(stripes, [&](int i) {
    std::vector<float>& values = gradients_[i];
    ForEachBlock(stripes.slices(i), [&](int index, int64_t block) {
      TensorBlocks& tensor = (*model.tensors)[index];
      values.resize(tensor.BlockElements(block));
      gradient(index, block, absl::MakeSpan(values));
      model.snapshot->Save(index, tensor, block);
      const Place place = {&tensor, block, /*begin=*/0, /*publish_to=*/nullptr};
      if (tensor.def().kind() != TRAINABLE) return AddRun(place, values);
      ApplyRun(*model.rule, rate_factor, place,
               {AsEncoded(values.data()), static_cast<int64_t>(values.size())});
    });
  });
}

}  // namespace muster
