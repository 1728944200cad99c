#ifndef PS_SERVER_SHARD_SHARD_EPOCH_H_
#define PS_SERVER_SHARD_SHARD_EPOCH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/parameter_service.pb.h"

namespace muster {

// The epoch of a model on a shard, and its phase in it: which requests mean the
// model that is there.
//
//   EMPTY --Begin--> LOADING --Seal--> READY
//
// and from each of them Clear, then Begin. Not thread-safe.
class ShardEpoch {
 public:
  explicit ShardEpoch(int32_t ps_index) : ps_index_(ps_index) {}

  ShardPhase phase() const { return phase_; }
  int64_t number() const { return number_; }

  void Clear() { phase_ = EMPTY; }
  void Begin(int64_t number) {
    number_ = number;
    phase_ = LOADING;
  }
  void Seal() { phase_ = READY; }

  // Errors of these: FailedPrecondition ("fenced: ").
  absl::Status CheckFence(const Sender& sender, const Fence& fence) const;
  // CheckFence, and the phase is `phase`.
  absl::Status CheckPhase(const Sender& sender, const Fence& fence,
                          ShardPhase phase) const;
  // The phase is READY in the epoch `number`; `what` is the request.
  absl::Status CheckReady(absl::string_view what, int64_t number) const;

  // Whether the epoch `number` may begin. Errors: as above if it is not
  // newer; InvalidArgument if it is no count of restores.
  absl::Status CheckNew(absl::string_view what, int64_t number) const;

 private:
  const int32_t ps_index_;
  ShardPhase phase_ = EMPTY;
  int64_t number_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_SHARD_EPOCH_H_
