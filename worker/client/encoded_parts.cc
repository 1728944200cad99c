#include "worker/client/encoded_parts.h"

namespace muster {

int64_t NumValues(absl::Span<const TensorView> gradients) {
  int64_t values = 0;
  for (const TensorView& gradient : gradients) {
    values += gradient.size_bytes / static_cast<int64_t>(sizeof(float));
  }
  return values;
}

void EncodedParts::Encode(const ClientModel& model,
                          absl::Span<const TensorView> gradients,
                          ErrorFeedback* feedback) {
  const int64_t values = NumValues(gradients);
  bytes_.resize(static_cast<size_t>(EncodedBytes(codec_, values)));
  parts_.resize(model.plan.parts.size());
  runs_.clear();
  int64_t begin = 0;
  for (size_t shard = 0; shard < parts_.size(); ++shard) {
    const std::vector<PlannedPart>& planned = model.plan.parts[shard];
    parts_[shard].resize(planned.size());
    for (size_t i = 0; i < planned.size(); ++i) {
      Extent& extent = parts_[shard][i];
      extent.offset = EncodedBytes(codec_, begin);
      for (const PlannedSlice& slice : planned[i].slices) {
        const Run run{static_cast<int>(shard), static_cast<int>(i),
                      model.tensors[slice.tensor].kind() == TRAINABLE, begin,
                      slice.length};
        const auto* const gradient =
            reinterpret_cast<const float*>(gradients[slice.tensor].data) +
            slice.offset;
        char* const bytes = bytes_.data() + EncodedBytes(codec_, begin);
        if (feedback != nullptr && run.trainable) {
          feedback->Encode(begin, slice.length, gradient, bytes);
        } else {
          codec_->Encode(gradient, slice.length, bytes);
        }
        runs_.push_back(run);
        begin += slice.length;
      }
      extent.size_bytes = EncodedBytes(codec_, begin) - extent.offset;
    }
  }
}

}  // namespace muster
