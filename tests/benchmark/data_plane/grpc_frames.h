#ifndef TESTS_BENCHMARK_DATA_PLANE_GRPC_FRAMES_H_
#define TESTS_BENCHMARK_DATA_PLANE_GRPC_FRAMES_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/benchmark/data_plane/workload.h"

namespace muster {

// options.bytes to another process and back through gRPC as Muster uses it (its
// settings, unary calls over bytes, parts of kMaxPartBytes, four at a time),
// but with nobody who looks at them: the limit of the gRPC link.
absl::StatusOr<std::unique_ptr<Workload>> MakeGrpcFrames(
    const WorkloadOptions& options);

// Its other end; returns when the standard input ends.
absl::Status ServeGrpcFrames();

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_GRPC_FRAMES_H_
