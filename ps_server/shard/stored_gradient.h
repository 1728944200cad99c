#ifndef PS_SERVER_SHARD_STORED_GRADIENT_H_
#define PS_SERVER_SHARD_STORED_GRADIENT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/codec/codec.h"
#include "ps_server/block/row_checks.h"
#include "ps_server/block/tensor_table.h"
#include "ps_server/shard/replication_policy.h"

namespace muster {

// The blocks of a shard's tensors, but for frozen ones, numbered one after
// another.
class BlockNumbers {
 public:
  BlockNumbers() = default;
  explicit BlockNumbers(const TensorTable& tensors);

  int64_t total() const { return first_.empty() ? 0 : first_.back(); }
  // REQUIRES: the tensor is not frozen.
  int64_t Of(int tensor, int64_t block) const { return first_[tensor] + block; }

 private:
  std::vector<int64_t> first_;  // [tensor], and the total
};

// One step of one worker as its parts came, encoded, with the place of each
// block in them. It shares their memory, which must not change. Parts may come
// in any order. Not thread-safe.
class StoredGradient {
 public:
  // Without parts yet; of the step that `part` is of.
  StoredGradient(const PushedPart& part, int64_t blocks);

  const Sender& sender() const { return sender_; }
  int64_t step() const { return step_; }
  // As PushedPart's.
  double rate_factor() const { return rate_factor_; }
  // Its bytes as they came, encoded.
  int64_t bytes() const { return bytes_; }
  int32_t parts_held() const { return static_cast<int32_t>(held_.size()); }
  int32_t parts() const { return parts_; }
  bool whole() const { return parts_held() == parts_; }

  // Whether `part` brings only new blocks, and, if it is the last one, all that
  // are missing; with the learning rate's factor of the others. Errors:
  // InvalidArgument naming the tensor.
  absl::Status CheckPart(absl::string_view what, const PushedPart& part,
                         const BlockNumbers& numbers,
                         const TensorTable& tensors) const;
  // REQUIRES: CheckPart is OK, and the part was not added before.
  void Add(PushedPart part, const BlockNumbers& numbers,
           const TensorTable& tensors);

  // What its parts have of rows, which is given away.
  std::vector<CheckedRows> TakeRows() { return std::move(rows_); }

  // Writes the values of block number `block` to `sum`, or adds them.
  // REQUIRES: whole(); sum.size() is the block's elements.
  void CopyTo(int64_t block, absl::Span<float> sum) const;
  void AddTo(int64_t block, absl::Span<float> sum) const;

 private:
  struct Held {
    absl::Cord data;
    const Codec* codec;
  };
  struct Place {
    int32_t held = -1;  // index in held_; -1: has not come
    int64_t offset = 0;
  };

  Sender sender_;
  int64_t step_;
  int32_t parts_;
  double rate_factor_;
  int64_t bytes_ = 0;
  int64_t blocks_held_ = 0;
  std::vector<Held> held_;
  std::vector<Place> places_;  // [block]
  std::vector<CheckedRows> rows_;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_STORED_GRADIENT_H_
