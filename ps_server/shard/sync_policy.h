#ifndef PS_SERVER_SHARD_SYNC_POLICY_H_
#define PS_SERVER_SHARD_SYNC_POLICY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/tensor/buffer_pool.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/shard/pending_update.h"
#include "ps_server/shard/replication_policy.h"
#include "ps_server/shard/stored_gradient.h"

namespace muster {

// Every update is the mean of the gradients that ps task 0 has chosen. The
// gradients of the open round (the update that is made next) are kept as they
// came, one for each worker; the token that opens the round after it names the
// chosen ones, whose mean in the token's order is the update (PendingUpdate):
// every shard and every run adds in the same order. What was not chosen is
// dropped. What comes for an update that was made is late. The factor of the
// learning rate is that of the chosen worker of lowest index.
//
// Rows of tables are updated when the token comes, by their mean over all
// chosen workers (row_mean.h): pulls of rows wait for nothing.
//
// The round that is open is known from the first token on. Memory: one gradient
// for each worker task, at most `max_bytes` together; those of the update that
// is being made are kept until all of it was read.
class SyncPolicy : public ReplicationPolicy {
 public:
  explicit SyncPolicy(int64_t max_bytes, bool has_tables = false)
      : max_bytes_(max_bytes), has_tables_(has_tables) {}

  absl::string_view name() const override { return "sync"; }
  absl::StatusOr<PartFate> CheckPart(absl::string_view what,
                                     const PushedPart& part,
                                     const TensorTable& tensors) const override;
  bool OnPart(PushedPart part, const TensorTable& tensors,
              PartApplier& applier) override;
  // A token without a round tells nothing.
  absl::Status OnToken(absl::string_view what, const StepToken& token,
                       const TensorTable& tensors,
                       PartApplier& applier) override;
  absl::Status OnCut(absl::string_view what, const StepToken& token,
                     const TensorTable& tensors, PartApplier& applier) override;
  void BeforeRead(absl::Span<const CheckedSlice> slices,
                  const TensorTable& tensors, PartApplier& applier) override {
    update_.MakeIn(slices, tensors, applier);
  }
  void Settle(const TensorTable& tensors, PartApplier& applier) override {
    update_.MakeAll(tensors, applier);
  }
  std::optional<std::vector<DuplicateMark>> AppliedSteps() const override;
  absl::string_view RateDifference() const override { return rate_difference_; }

 private:
  absl::StatusOr<PartFate> CheckRound(absl::string_view what,
                                      const PushedPart& part) const;
  // The gradient that `part` is a part of; null if it is the first one.
  const StoredGradient* Find(const PushedPart& part) const;
  // Errors: Internal if some of the chosen gradients is not held.
  absl::Status CheckChosen(absl::string_view what,
                           const StepToken& token) const;
  // The factor of the learning rate of the chosen gradient whose task comes
  // first: the same on every shard. Notes it if another one differs. REQUIRES:
  // CheckChosen is OK.
  double ChooseRateFactor(const StepToken& token);
  // The chosen gradients in the token's order. REQUIRES: CheckChosen is OK.
  std::vector<StoredGradient> TakeChosen(const StepToken& token);

  const int64_t max_bytes_;
  const bool has_tables_;
  // The memory of all gradients; first, so that it goes last.
  BufferPool kept_;
  // The newest update that was made; nothing before the first token.
  std::optional<int64_t> applied_;
  // The part of it that no value has yet.
  PendingUpdate update_;
  // The gradients of round *applied_ + 1.
  std::map<TaskKey, StoredGradient> gradients_;
  int64_t bytes_ = 0;
  std::map<TaskKey, DuplicateMark> newest_chosen_;
  // The first one; "" before.
  std::string rate_difference_;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_SYNC_POLICY_H_
