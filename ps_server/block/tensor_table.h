#ifndef PS_SERVER_BLOCK_TENSOR_TABLE_H_
#define PS_SERVER_BLOCK_TENSOR_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"
#include "common/tensor/aligned_buffer.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/tensor.pb.h"
#include "ps_server/block/parameter_memory.h"
#include "ps_server/block/tensor_blocks.h"

namespace muster {

// Checks the definitions that a chief sent: names (grammar; no two alike but of
// pieces of one tensor, which do not overlap), shapes (rank, positive
// dimensions, no overflow), float32, known kind, a decay from 0 to 1 of state
// tensors only, canonical layout, extents of whole blocks; and that parameters
// with `num_slots` slots each trainable tensor take at most `max_bytes`.
// Returns how many of those are left. Allocates nothing. Errors name the
// tensor: InvalidArgument; Unimplemented for another dtype or layout.
absl::StatusOr<int64_t> CheckTensorDefs(
    const google::protobuf::RepeatedPtrField<TensorDef>& defs, int num_slots,
    int64_t max_bytes);

// Checks the name of a parameter, or of a table, that is defined. Errors:
// InvalidArgument.
absl::Status CheckParameterName(const std::string& name);

// The parameters of a shard, or the pieces of them that it holds, in creation
// order, found by name. Not thread-safe.
class TensorTable {
 public:
  // Where the parameters are to lie.
  enum class Sharing {
    kPrivate,
    // In memory that other processes can read, if the machine has such.
    kShared,
  };

  // A table of nothing.
  TensorTable() = default;
  // REQUIRES: `defs` passed CheckTensorDefs. Errors: ResourceExhausted if the
  // machine has no memory for them.
  static absl::StatusOr<TensorTable> Create(
      const google::protobuf::RepeatedPtrField<TensorDef>& defs,
      absl::Span<const SlotDef> slots, Sharing sharing = Sharing::kPrivate);

  // Pieces; a whole tensor is one.
  int size() const { return static_cast<int>(tensors_.size()); }
  TensorBlocks& operator[](int i) { return tensors_[i]; }
  const TensorBlocks& operator[](int i) const { return tensors_[i]; }

  int num_tensors() const { return static_cast<int>(by_name_.size()); }

  // The pieces of the tensor, at least one, in the order of their definition.
  // Errors: NotFound, with the nearest name.
  absl::StatusOr<absl::Span<const int>> Find(absl::string_view name) const;

  // The memory of all parameters; null without a definition.
  const std::shared_ptr<ParameterMemory>& memory() const { return memory_; }

  int64_t parameter_bytes() const;
  int64_t slot_bytes() const;

 private:
  // Errors: ResourceExhausted.
  absl::Status Allocate(int64_t parameter_bytes, int64_t slot_bytes,
                        Sharing sharing);

  std::shared_ptr<ParameterMemory> memory_;
  // The slots of all tensors, in their order. One piece: huge pages hold all
  // of it, also where no tensor is as large as one. With slots of 26 MB in 8
  // pieces a step through shared memory took a tenth longer (2 cores of EPYC).
  AlignedBuffer slot_memory_;
  std::vector<TensorBlocks> tensors_;
  absl::flat_hash_map<std::string, std::vector<int>> by_name_;
};

}  // namespace muster

#endif  // PS_SERVER_BLOCK_TENSOR_TABLE_H_
