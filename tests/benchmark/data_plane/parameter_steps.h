#ifndef TESTS_BENCHMARK_DATA_PLANE_PARAMETER_STEPS_H_
#define TESTS_BENCHMARK_DATA_PLANE_PARAMETER_STEPS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tests/benchmark/data_plane/workload.h"

namespace muster {

enum class StepKind { kPush, kPushAndPull, kPushInPlace, kAllReduce };

// Steps of workers without a model: each pushes all gradients through its
// ParameterClient to real shards, which apply them, and pulls all parameters,
// or only pushes, or has the parameters in place. In kAllReduce a step is one
// round of all `workers`: every shard applies the mean of their gradients, and
// each pulls what came of it.
absl::StatusOr<std::unique_ptr<Workload>> MakeParameterSteps(
    const WorkloadOptions& options, StepKind kind);

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_PARAMETER_STEPS_H_
