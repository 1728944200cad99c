#ifndef COMMON_BASE_MONOTONIC_WAIT_H_
#define COMMON_BASE_MONOTONIC_WAIT_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// Waits with `mu` held until `condition` holds or `timeout` has passed on
// CLOCK_MONOTONIC; returns whether it holds. As absl::Mutex::AwaitWithTimeout,
// which in Abseil 20220623 waits on the wall clock: set back by an hour, every
// wait would take an hour longer. May be a millisecond late while others hold
// `mu`.
bool AwaitMonotonic(absl::Mutex* mu, const absl::Condition& condition,
                    absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

}  // namespace muster

#endif  // COMMON_BASE_MONOTONIC_WAIT_H_
