#include "worker/client/encoded_parts.h"

namespace muster {

void EncodedParts::Encode(const ClientModel& model,
                          absl::Span<const TensorView> gradients) {
  int64_t values = 0;
  for (const TensorView& gradient : gradients) {
    values += gradient.size_bytes / static_cast<int64_t>(sizeof(float));
  }
  bytes_.resize(static_cast<size_t>(EncodedBytes(codec_, values)));
  parts_.resize(model.plan.parts.size());
  int64_t offset = 0;
  for (size_t shard = 0; shard < parts_.size(); ++shard) {
    const std::vector<PlannedPart>& planned = model.plan.parts[shard];
    parts_[shard].resize(planned.size());
    for (size_t i = 0; i < planned.size(); ++i) {
      Extent& extent = parts_[shard][i];
      extent.offset = offset;
      for (const PlannedSlice& slice : planned[i].slices) {
        const auto* const gradient =
            reinterpret_cast<const float*>(gradients[slice.tensor].data);
        codec_->Encode(gradient + slice.offset, slice.length,
                       bytes_.data() + offset);
        offset += EncodedBytes(codec_, slice.length);
      }
      extent.size_bytes = offset - extent.offset;
    }
  }
}

}  // namespace muster
