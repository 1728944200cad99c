#ifndef PS_SERVER_BLOCK_TENSOR_BLOCKS_H_
#define PS_SERVER_BLOCK_TENSOR_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"
#include "common/rpc/protocol.h"
#include "proto/tensor.pb.h"

namespace muster {

// The values of one parameter, or of the piece of one that its definition's
// extent says, cut into blocks of kBlockElements (the last one may be shorter).
// Blocks and elements are counted from the piece's first. The parameter and the
// slots lie in memories of the owner's; a block's slots lie beside each other,
// each stream aligned to 64 bytes:
//
//   parameter: block 0, block 1, ...
//   slots:     block 0: slot 0 | slot 1 | ...   block 1: ...
//
// A stream is 0 for the parameter itself and 1 + i for slot i. Each block has a
// count of updates t. Not thread-safe. Movable, not copyable.
class TensorBlocks {
 public:
  // Sets every slot to its start value and the counts to 0. `slots` is empty
  // but for a TRAINABLE tensor. `parameter`, as many values as there are
  // elements, and `slot_memory` of SlotMemoryBytes, both aligned to 64 bytes,
  // outlive this. REQUIRES: `def` was checked: float32, positive dimensions, no
  // overflow, an extent of whole blocks.
  TensorBlocks(const TensorDef& def, absl::Span<const SlotDef> slots,
               float* parameter, float* slot_memory);

  const TensorDef& def() const { return def_; }
  // The first element in the whole tensor, which has so many.
  int64_t begin() const { return def_.extent().begin(); }
  int64_t whole_elements() const { return whole_elements_; }
  int64_t elements() const { return elements_; }
  int64_t num_blocks() const { return num_blocks_; }
  int num_slots() const { return num_slots_; }

  // Elements of one block: kBlockElements, or less for the last.
  int64_t BlockElements(int64_t block) const;

  // The first element of `stream` of `block`.
  float* Stream(int64_t block, int stream);
  const float* Stream(int64_t block, int stream) const;
  // The slots of `block`, for UpdateRule::Apply.
  absl::Span<float* const> Slots(int64_t block) const;

  // All values of the parameter that are here.
  absl::Span<const float> parameter() const {
    return {parameter_, static_cast<size_t>(elements_)};
  }

  // Updates that were applied to `block`.
  int64_t updates(int64_t block) const { return updates_[block]; }
  void set_updates(int64_t block, int64_t updates) {
    updates_[block] = updates;
  }

  // Bytes of the parameter, and of its slots, without padding.
  int64_t parameter_bytes() const { return elements_ * sizeof(float); }
  int64_t slot_bytes() const { return parameter_bytes() * num_slots_; }

 private:
  // Where stream 1 + `slot` of `block` begins in slot_memory_, in floats.
  int64_t SlotStart(int64_t block, int slot) const;

  TensorDef def_;
  int64_t whole_elements_;
  int64_t elements_;
  int64_t num_blocks_;
  int num_slots_;
  float* parameter_;
  float* slot_memory_;
  std::vector<float*> slot_pointers_;  // [block][slot]
  std::vector<int64_t> updates_;       // [block]
};

// A state tensor's value after a pushed delta; `decay` is its definition's. In
// this order nothing of a value is left by a decay of 1, and no value falls
// below 0 while the deltas do not.
inline float DecayAndAdd(float value, float decay, float delta) {
  return (value - decay * value) + delta;
}

// The elements of a tensor that its definition, which was checked, has the
// shard hold.
int64_t HeldElements(const TensorDef& def);

// The bytes that so many slots of a tensor, whose definition was checked, take
// in TensorBlocks, with padding.
int64_t SlotMemoryBytes(const TensorDef& def, size_t num_slots);

}  // namespace muster

#endif  // PS_SERVER_BLOCK_TENSOR_BLOCKS_H_
