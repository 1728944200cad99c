#include "worker/tower/gradient_memory.h"

#include <cstddef>

namespace muster {
namespace {

constexpr size_t kAlignedFloats = AlignedBuffer::kAlignment / sizeof(float);

}  // namespace

std::vector<absl::Span<float>> PlaceGradients(const CompiledModel& model,
                                              AlignedBuffer* memory) {
  std::vector<size_t> offsets;
  size_t floats = 0;
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    offsets.push_back(floats);
    const size_t size = model.gradient(static_cast<int>(i)).size();
    floats += (size + kAlignedFloats - 1) / kAlignedFloats * kAlignedFloats;
  }
  *memory = AlignedBuffer(floats * sizeof(float));
  std::vector<absl::Span<float>> gradients;
  for (size_t i = 0; i < offsets.size(); ++i) {
    gradients.emplace_back(memory->as<float>() + offsets[i],
                           model.gradient(static_cast<int>(i)).size());
  }
  return gradients;
}

}  // namespace muster
