#ifndef TESTS_BENCHMARK_DATA_PLANE_HAND_OFF_H_
#define TESTS_BENCHMARK_DATA_PLANE_HAND_OFF_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/benchmark/data_plane/workload.h"

namespace muster {

// The state of a ring's reader when an entry is handed to it.
enum class Readers { kSpin, kSleep };

// An entry to another process and one back, over the rings and the doorbell of
// common/shared_memory: two hand-offs. For readers that sleep each end first
// waits until the other does, which is no part of the step.
absl::StatusOr<std::unique_ptr<Workload>> MakeHandOff(Readers readers);

// The other end, until its standard input ends.
absl::Status ServeHandOff(Readers readers);

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_HAND_OFF_H_
