#ifndef TESTS_BENCHMARK_DATA_PLANE_BURST_H_
#define TESTS_BENCHMARK_DATA_PLANE_BURST_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/benchmark/data_plane/workload.h"

namespace muster {

struct BurstOptions {
  // At least so long, and at least so many steps of each worker.
  absl::Duration time = absl::Milliseconds(500);
  int min_steps = 5;
  int warm_up_steps = 2;
};

struct Burst {
  // Seconds of every worker's steps, sorted. Not empty.
  std::vector<double> step_s;
  // CPU time of all processes, over all steps.
  double cpu_s = 0;

  // The smallest value that at least this part of the steps does not exceed.
  double Quantile(double part) const;
};

// Repeats a workload's step, each worker on a thread of its own. Errors: the
// first that a step or the check at the end gives.
absl::StatusOr<Burst> RunBurst(const BurstOptions& options, int workers,
                               Workload* workload);

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_BURST_H_
