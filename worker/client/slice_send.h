#ifndef WORKER_CLIENT_SLICE_SEND_H_
#define WORKER_CLIENT_SLICE_SEND_H_

#include <cstdint>

#include "absl/time/time.h"

namespace muster {

// When a run of one tensor's values was on its way: all the values of the
// tensor that one message carries.
struct SliceSend {
  // In creation order.
  int tensor = 0;
  // As float32.
  int64_t bytes = 0;
  // Given to the link (the last time, if it was sent again), and acknowledged
  // by the shard. Monotonic.
  absl::Time left;
  absl::Time acknowledged;
};

}  // namespace muster

#endif  // WORKER_CLIENT_SLICE_SEND_H_
