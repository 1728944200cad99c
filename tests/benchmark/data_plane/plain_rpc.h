#ifndef TESTS_BENCHMARK_DATA_PLANE_PLAIN_RPC_H_
#define TESTS_BENCHMARK_DATA_PLANE_PLAIN_RPC_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/benchmark/data_plane/workload.h"

namespace muster {

// Push and pull as plain gRPC does it, with another process:
// plain_parameters.proto, the synchronous API, every setting but the largest
// message at its default. The server applies Muster's own update rule, unless
// options.optimizer is "".
absl::StatusOr<std::unique_ptr<Workload>> MakePlainRpc(
    const WorkloadOptions& options);

// Its other end; returns when the standard input ends.
absl::Status ServePlainRpc(const WorkloadOptions& options);

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_PLAIN_RPC_H_
