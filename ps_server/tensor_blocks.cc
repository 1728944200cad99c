#include "ps_server/tensor_blocks.h"

#include <algorithm>
#include <cassert>

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

int64_t NumElements(const TensorDef& def) {
  int64_t elements = 1;
  for (const int64_t dim : def.shape()) elements *= dim;
  return elements;
}

TensorBlocks::TensorBlocks(const TensorDef& def,
                           absl::Span<const SlotDef> slots)
    : def_(def),
      elements_(NumElements(def)),
      num_blocks_(NumBlocks(elements_)),
      num_slots_(static_cast<int>(slots.size())),
      memory_(PaddedElements(elements_) * (1 + num_slots_) * sizeof(float)),
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

int64_t TensorBlocks::BlockStart(int64_t block) const {
  return block * kBlockElements * (1 + num_slots_);
}

int64_t TensorBlocks::StreamStride(int64_t block) const {
  return RoundUpToLine(BlockElements(block));
}

int64_t TensorBlocks::StreamOffset(int64_t block, int stream) const {
  assert(stream >= 0 && stream <= num_slots_);
  return stream * StreamStride(block);
}

float* TensorBlocks::Stream(int64_t block, int stream) {
  return memory_.as<float>() + BlockStart(block) + StreamOffset(block, stream);
}

const float* TensorBlocks::Stream(int64_t block, int stream) const {
  return memory_.as<float>() + BlockStart(block) + StreamOffset(block, stream);
}

absl::Span<float* const> TensorBlocks::Slots(int64_t block) const {
  return absl::MakeConstSpan(slot_pointers_)
      .subspan(block * num_slots_, num_slots_);
}

void TensorBlocks::Read(int stream, int64_t offset, int64_t length,
                        float* dst) const {
  assert(offset >= 0 && offset + length <= elements_);
  while (length > 0) {
    const int64_t block = offset / kBlockElements;
    const int64_t begin = offset - block * kBlockElements;
    const int64_t count = std::min(length, BlockElements(block) - begin);
    dst = std::copy_n(Stream(block, stream) + begin, count, dst);
    offset += count;
    length -= count;
  }
}

absl::Span<const float> TensorBlocks::BlockMemory(int64_t block) const {
  return absl::MakeConstSpan(memory_.as<float>() + BlockStart(block),
                             StreamStride(block) * (1 + num_slots_));
}

}  // namespace muster
