#ifndef TESTS_BENCHMARK_DATA_PLANE_MEMORY_COPY_H_
#define TESTS_BENCHMARK_DATA_PLANE_MEMORY_COPY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tests/benchmark/data_plane/workload.h"

namespace muster {

// One memcpy: the limit of everything that moves bytes in memory.
absl::StatusOr<std::unique_ptr<Workload>> MakeMemoryCopy(
    const WorkloadOptions& options);

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_MEMORY_COPY_H_
