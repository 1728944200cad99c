#ifndef PS_SERVER_SYNC_ASYNC_POLICY_H_
#define PS_SERVER_SYNC_ASYNC_POLICY_H_

#include <algorithm>

#include "ps_server/sync/replication_policy.h"

namespace muster {

// Every part is applied as it comes: no worker waits for another. If staleness
// scales the learning rate, the part of a step that is s updates old is applied
// with
//
//   lr / max(1, s)
//
// Zhang, Gupta, Lian and Liu, "Staleness-aware Async-SGD for Distributed Deep
// Learning", IJCAI 2016. The learning rate is divided, not the gradient, so
// that slots such as Adam's see the whole gradient.
class AsyncPolicy : public ReplicationPolicy {
 public:
  explicit AsyncPolicy(const AsyncReplication& spec)
      : scales_learning_rate_(spec.staleness_scaled_learning_rate()) {}

  absl::string_view name() const override { return "async"; }
  void OnPart(PushedPart part, PartApplier& applier) override {
    if (scales_learning_rate_) {
      part.rate_factor =
          1.0 / static_cast<double>(std::max<int64_t>(1, part.staleness));
    }
    applier.Apply(part);
  }

 private:
  const bool scales_learning_rate_;
};

}  // namespace muster

#endif  // PS_SERVER_SYNC_ASYNC_POLICY_H_
