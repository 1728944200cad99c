#ifndef TESTS_BENCHMARK_DATA_PLANE_RAW_TCP_H_
#define TESTS_BENCHMARK_DATA_PLANE_RAW_TCP_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/benchmark/data_plane/workload.h"

namespace muster {

// options.bytes to another process and as many back, over a loopback TCP
// connection with nothing on top: the limit of every transport of bytes. The
// congestion control is cubic, whatever the machine's default: with bbr the
// same transfer takes up to twice as long.
absl::StatusOr<std::unique_ptr<Workload>> MakeRawTcp(
    const WorkloadOptions& options);

// Its other end; returns when the standard input ends.
absl::Status ServeRawTcp(const WorkloadOptions& options);

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_RAW_TCP_H_
