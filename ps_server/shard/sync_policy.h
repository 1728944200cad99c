#ifndef PS_SERVER_SHARD_SYNC_POLICY_H_
#define PS_SERVER_SHARD_SYNC_POLICY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ps_server/block/buffer_pool.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/shard/replication_policy.h"
#include "ps_server/shard/stored_gradient.h"

namespace muster {

// Every update is the mean of the gradients that ps task 0 has chosen. The
// gradients of the open round (the update that is made next) are kept as they
// came, one for each worker; the token that opens the round after it names the
// chosen ones, and then, for each block,
//
//   sum = g[0];  sum += g[i] for i = 1, 2, ... in the token's order
//   update rule (or, of a state tensor, addition) with sum / number of chosen
//
// in float, so that every shard and every run adds in the same order. What was
// not chosen is dropped. What comes for an update that was made is late.
//
// The round that is open is known from the first token on. Memory: one gradient
// for each worker task, at most `max_bytes` together.
class SyncPolicy : public ReplicationPolicy {
 public:
  explicit SyncPolicy(int64_t max_bytes) : max_bytes_(max_bytes) {}

  absl::string_view name() const override { return "sync"; }
  absl::StatusOr<PartFate> CheckPart(absl::string_view what,
                                     const PushedPart& part,
                                     const TensorTable& tensors) const override;
  void OnPart(PushedPart part, const TensorTable& tensors,
              PartApplier& applier) override;
  // A token without a round tells nothing.
  absl::Status OnToken(absl::string_view what, const StepToken& token,
                       const TensorTable& tensors,
                       PartApplier& applier) override;
  absl::Status OnCut(absl::string_view what, const StepToken& token,
                     const TensorTable& tensors, PartApplier& applier) override;
  std::optional<std::vector<DuplicateMark>> AppliedSteps() const override;

  int64_t stored_bytes() const { return bytes_; }

 private:
  using Gradients = std::vector<const StoredGradient*>;

  absl::StatusOr<PartFate> CheckRound(absl::string_view what,
                                      const PushedPart& part) const;
  // The gradient that `part` is a part of; null if it is the first one.
  const StoredGradient* Find(const PushedPart& part) const;
  // The chosen gradients in the token's order.
  absl::StatusOr<Gradients> FindChosen(absl::string_view what,
                                       const StepToken& token) const;
  void ApplyMean(const Gradients& chosen, const TensorTable& tensors,
                 PartApplier& applier);

  const int64_t max_bytes_;
  // The memory of gradients_; first, so that it goes last.
  BufferPool kept_;
  // The newest update that was made; nothing before the first token.
  std::optional<int64_t> applied_;
  // The gradients of round *applied_ + 1.
  std::map<TaskKey, StoredGradient> gradients_;
  int64_t bytes_ = 0;
  std::map<TaskKey, DuplicateMark> newest_chosen_;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_SYNC_POLICY_H_
