#include "worker/client/encoded_parts.h"

#include <utility>

namespace muster {

int64_t NumValues(absl::Span<const TensorView> gradients) {
  int64_t values = 0;
  for (const TensorView& gradient : gradients) {
    values += gradient.size_bytes / static_cast<int64_t>(sizeof(float));
  }
  return values;
}

void EncodedParts::Begin(const ClientModel& model,
                         absl::Span<const TensorView> gradients) {
  bytes_.resize(
      static_cast<size_t>(EncodedBytes(codec_, NumValues(gradients))));
  parts_.resize(model.plan.parts.size());
  runs_.clear();
  gradients_ = gradients;
  int64_t begin = 0;
  for (size_t shard = 0; shard < parts_.size(); ++shard) {
    const std::vector<PlannedPart>& planned = model.plan.parts[shard];
    parts_[shard].assign(planned.size(), Extent());
    for (size_t i = 0; i < planned.size(); ++i) {
      if (!planned[i].is_pushed()) continue;
      Extent& extent = parts_[shard][i];
      extent.begin = begin;
      extent.first_run = runs_.size();
      extent.runs = planned[i].slices.size();
      for (const PlannedSlice& slice : planned[i].slices) {
        runs_.push_back({static_cast<int>(shard), static_cast<int>(i),
                         model.tensors[slice.tensor].kind() == TRAINABLE, begin,
                         slice.length, slice.tensor, slice.offset});
        begin += slice.length;
      }
      extent.length = begin - extent.begin;
    }
  }
}

TensorView EncodedParts::Part(int shard, int part, ErrorFeedback* feedback) {
  Extent& extent = parts_[shard][part];
  if (!std::exchange(extent.is_encoded, true)) {
    for (size_t i = 0; i < extent.runs; ++i) {
      EncodeRun(extent.first_run + i, feedback);
    }
  }
  return {bytes_.data() + EncodedBytes(codec_, extent.begin),
          EncodedBytes(codec_, extent.length)};
}

void EncodedParts::EncodeRun(size_t index, ErrorFeedback* feedback) {
  const Run& run = runs_[index];
  char* const bytes = bytes_.data() + EncodedBytes(codec_, run.begin);
  const float* const gradient =
      reinterpret_cast<const float*>(gradients_[run.tensor].data) + run.offset;
  if (feedback != nullptr && run.trainable) {
    feedback->Encode(run.begin, run.length, gradient, bytes);
  } else {
    codec_->Encode(gradient, run.length, bytes);
  }
}

}  // namespace muster
