#ifndef TESTS_BENCHMARK_DATA_PLANE_BARE_APPLY_H_
#define TESTS_BENCHMARK_DATA_PLANE_BARE_APPLY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tests/benchmark/data_plane/workload.h"

namespace muster {

// One update of all parameters from a gradient in this process' memory, as
// float32 or in options.codec's form: the floor of every step.
absl::StatusOr<std::unique_ptr<Workload>> MakeBareApply(
    const WorkloadOptions& options);

// The same loads and stores without arithmetic, of float32: what memory allows
// the rule at most.
absl::StatusOr<std::unique_ptr<Workload>> MakeApplyBound(
    const WorkloadOptions& options);

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_BARE_APPLY_H_
