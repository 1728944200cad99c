#ifndef COMMON_RPC_DEADLINE_H_
#define COMMON_RPC_DEADLINE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "grpc/support/time.h"

namespace muster {

// The time for a message without tensor bytes.
inline constexpr absl::Duration kControlTimeout = absl::Seconds(5);

// The time for a call that shares its connection with `bytes` of tensors, its
// own included: 10 s and a second for each MiB. A slower link than 1 MiB/s
// makes no sense to train over.
absl::Duration TransferTimeout(int64_t bytes);

// The same point in time for gRPC. `deadline` is of MonotonicClock, so that a
// step of the wall clock moves no deadline. InfiniteFuture stays infinite.
gpr_timespec ToGrpcDeadline(absl::Time deadline);

}  // namespace muster

#endif  // COMMON_RPC_DEADLINE_H_
