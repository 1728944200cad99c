#ifndef TESTS_BENCHMARK_DATA_PLANE_DEVICE_COPY_H_
#define TESTS_BENCHMARK_DATA_PLANE_DEVICE_COPY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tests/benchmark/data_plane/workload.h"

namespace muster {

enum class CopyTo { kDevice, kHost };

// One copy between pinned memory and the first device of backend cuda: the
// limit of what a step brings there and back. Errors: those of CreateBackend,
// such as Unavailable where there is no card.
absl::StatusOr<std::unique_ptr<Workload>> MakeDeviceCopy(
    const WorkloadOptions& options, CopyTo to);

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_DEVICE_COPY_H_
