#include "worker/tower/gradient_memory.h"

#include <cstdint>

#include "common/tensor/aligned_places.h"

namespace muster {

std::vector<absl::Span<float>> PlaceGradients(const CompiledModel& model,
                                              AlignedBuffer* memory) {
  std::vector<int64_t> elements;
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    elements.push_back(
        static_cast<int64_t>(model.gradient(static_cast<int>(i)).size()));
  }
  return PlaceSpans<float>(elements, memory);
}

std::vector<absl::Span<float>> PlaceLike(
    absl::Span<const absl::Span<float>> tensors, AlignedBuffer* memory) {
  std::vector<int64_t> elements;
  for (const absl::Span<float> values : tensors) {
    elements.push_back(static_cast<int64_t>(values.size()));
  }
  return PlaceSpans<float>(elements, memory);
}

}  // namespace muster
