#ifndef PS_SERVER_SHARD_PENDING_UPDATE_H_
#define PS_SERVER_SHARD_PENDING_UPDATE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ps_server/block/slice_checks.h"
#include "ps_server/block/tensor_table.h"
#include "ps_server/shard/replication_policy.h"
#include "ps_server/shard/stored_gradient.h"

namespace muster {

// One update by the mean of several gradients, made block by block as the
// values are asked for: whoever pulls the first layers need not wait for the
// last ones. For each block
//
//   sum = g[0];  sum += g[i] for i = 1, 2, ... in the given order
//   update rule (or, of a state tensor, addition) with sum / number of them
//
// in float, with the learning rate times `rate_factor`, whoever asks first. Not
// thread-safe.
class PendingUpdate {
 public:
  // Nothing is left to do.
  PendingUpdate() = default;
  // REQUIRES: `gradients` are whole, at least one.
  PendingUpdate(std::vector<StoredGradient> gradients, double rate_factor,
                const TensorTable& tensors);

  bool is_made() const { return blocks_left_ == 0; }

  // Makes what is left of the update in the blocks that the slices touch.
  void MakeIn(absl::Span<const CheckedSlice> slices, const TensorTable& tensors,
              PartApplier& applier);
  void MakeAll(const TensorTable& tensors, PartApplier& applier);

 private:
  // Appends the blocks [first, end) of a tensor that are left, and notes that
  // they are not any more.
  void Claim(int tensor, int64_t first, int64_t end, const TensorTable& tensors,
             std::vector<CheckedSlice>* claimed);
  void WriteMean(int64_t number, absl::Span<float> mean) const;

  // Empty when the update is made.
  std::vector<StoredGradient> gradients_;
  double rate_factor_ = 1;
  BlockNumbers numbers_;
  std::vector<bool> is_left_;  // [block number]
  int64_t blocks_left_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_PENDING_UPDATE_H_
