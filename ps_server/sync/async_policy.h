#ifndef PS_SERVER_SYNC_ASYNC_POLICY_H_
#define PS_SERVER_SYNC_ASYNC_POLICY_H_

#include "ps_server/sync/replication_policy.h"

namespace muster {

// Every part is applied as it comes: no worker waits for another.
class AsyncPolicy : public ReplicationPolicy {
 public:
  absl::string_view name() const override { return "async"; }
  void OnPart(PushedPart part, PartApplier& applier) override {
    applier.Apply(part);
  }
};

}  // namespace muster

#endif  // PS_SERVER_SYNC_ASYNC_POLICY_H_
