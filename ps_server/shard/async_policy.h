#ifndef PS_SERVER_SHARD_ASYNC_POLICY_H_
#define PS_SERVER_SHARD_ASYNC_POLICY_H_

#include <optional>
#include <string>
#include <vector>

#include "ps_server/shard/replication_policy.h"

namespace muster {

// Every part is applied as it comes: no worker waits for another here. If
// staleness scales the learning rate, the part of a step that is s updates old
// is applied with
//
//   lr / max(1, s)
//
// and the factor that its push has.
//
// Zhang, Gupta, Lian and Liu, "Staleness-aware Async-SGD for Distributed Deep
// Learning", IJCAI 2016. The learning rate is divided, not the gradient, so
// that slots such as Adam's see the whole gradient.
class AsyncPolicy : public ReplicationPolicy {
 public:
  // `name`: of the mode; bounded staleness applies as async does.
  AsyncPolicy(std::string name, const AsyncReplication& spec)
      : name_(std::move(name)),
        scales_learning_rate_(spec.staleness_scaled_learning_rate()) {}

  absl::string_view name() const override { return name_; }
  absl::StatusOr<PartFate> CheckPart(absl::string_view what,
                                     const PushedPart& part,
                                     const TensorTable& tensors) const override;
  bool OnPart(PushedPart part, const TensorTable& tensors,
              PartApplier& applier) override;
  absl::Status OnToken(absl::string_view what, const StepToken& token,
                       const TensorTable& tensors,
                       PartApplier& applier) override;
  absl::Status OnCut(absl::string_view what, const StepToken& token,
                     const TensorTable& tensors, PartApplier& applier) override;
  // Every part is applied as it comes.
  void BeforeRead(absl::Span<const CheckedSlice> /*slices*/,
                  const TensorTable& /*tensors*/,
                  PartApplier& /*applier*/) override {}
  void Settle(const TensorTable& /*tensors*/,
              PartApplier& /*applier*/) override {}
  std::optional<std::vector<DuplicateMark>> AppliedSteps() const override {
    return std::nullopt;
  }

 private:
  const std::string name_;
  const bool scales_learning_rate_;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_ASYNC_POLICY_H_
