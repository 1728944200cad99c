#include "ps_server/block/tensor_blocks.h"

#include <algorithm>
#include <cassert>

#include "common/tensor/aligned_buffer.h"
#include "common/tensor/shape.h"

namespace muster {
namespace {

constexpr int64_t kFloatsPerLine = AlignedBuffer::kAlignment / sizeof(float);

int64_t RoundUpToLine(int64_t floats) {
  return (floats + kFloatsPerLine - 1) / kFloatsPerLine * kFloatsPerLine;
}

int64_t PaddedElements(int64_t elements) {
  const int64_t whole = elements / kBlockElements * kBlockElements;
  return whole + RoundUpToLine(elements - whole);
}

}  // namespace

int64_t HeldElements(const TensorDef& def) {
  return def.has_extent() ? def.extent().length() : NumElements(def.shape());
}

int64_t SlotMemoryBytes(const TensorDef& def, size_t num_slots) {
  return PaddedElements(HeldElements(def)) *
         static_cast<int64_t>(num_slots * sizeof(float));
}

TensorBlocks::TensorBlocks(const TensorDef& def,
                           absl::Span<const SlotDef> slots, float* parameter,
                           float* slot_memory)
    : def_(def),
      whole_elements_(NumElements(def.shape())),
      elements_(HeldElements(def)),
      num_blocks_(NumBlocks(elements_)),
      num_slots_(static_cast<int>(slots.size())),
      parameter_(parameter),
      slot_memory_(slot_memory),
      updates_(num_blocks_, 0) {
  slot_pointers_.reserve(num_blocks_ * num_slots_);
  for (int64_t block = 0; block < num_blocks_; ++block) {
    for (int slot = 0; slot < num_slots_; ++slot) {
      float* const values = Stream(block, 1 + slot);
      std::fill_n(values, BlockElements(block), slots[slot].initial_value);
      slot_pointers_.push_back(values);
    }
  }
}

int64_t TensorBlocks::BlockElements(int64_t block) const {
  assert(block >= 0 && block < num_blocks_);
  return std::min(kBlockElements, elements_ - block * kBlockElements);
}

int64_t TensorBlocks::SlotStart(int64_t block, int slot) const {
  assert(slot >= 0 && slot < num_slots_);
  return block * kBlockElements * num_slots_ +
         slot * RoundUpToLine(BlockElements(block));
}

float* TensorBlocks::Stream(int64_t block, int stream) {
  return stream == 0 ? parameter_ + block * kBlockElements
                     : slot_memory_ + SlotStart(block, stream - 1);
}

const float* TensorBlocks::Stream(int64_t block, int stream) const {
  return stream == 0 ? parameter_ + block * kBlockElements
                     : slot_memory_ + SlotStart(block, stream - 1);
}

absl::Span<float* const> TensorBlocks::Slots(int64_t block) const {
  return absl::MakeConstSpan(slot_pointers_)
      .subspan(block * num_slots_, num_slots_);
}

}  // namespace muster
