#include "tests/benchmark/data_plane/burst.h"

#include <sys/types.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>

#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

double SecondsOf(clockid_t clock) {
  timespec time = {};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

double CpuSeconds(const std::vector<pid_t>& processes) {
  double seconds = SecondsOf(CLOCK_PROCESS_CPUTIME_ID);
  for (const pid_t process : processes) {
    clockid_t clock;
    if (clock_getcpuclockid(process, &clock) == 0) seconds += SecondsOf(clock);
  }
  return seconds;
}

// One worker's steps; `go_on(steps so far)` says whether there is one more.
struct Steps {
  std::vector<double> seconds;
  absl::Status status;

  void Run(int worker, Workload* workload,
           const std::function<bool(int)>& go_on) {
    const Clock& clock = *SystemClock();
    while (status.ok() && go_on(static_cast<int>(seconds.size()))) {
      const absl::Time start = clock.Now();
      status = workload->Step(worker);
      seconds.push_back(
          absl::ToDoubleSeconds(clock.Now() - start - workload->idle()));
    }
  }
};

absl::StatusOr<std::vector<double>> RunWorkers(
    int workers, Workload* workload, const std::function<bool(int)>& go_on) {
  std::vector<Steps> steps(workers);
  std::vector<std::thread> threads;
  for (int i = 1; i < workers; ++i) {
    threads.emplace_back([&, i] { steps[i].Run(i, workload, go_on); });
  }
  steps[0].Run(0, workload, go_on);
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (const Steps& of_worker : steps) {
    RETURN_IF_ERROR(of_worker.status);
    all.insert(all.end(), of_worker.seconds.begin(), of_worker.seconds.end());
  }
  return all;
}

}  // namespace

double Burst::Quantile(double part) const {
  const auto count = static_cast<double>(step_s.size());
  const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(part * count)));
  return step_s[std::min(rank, step_s.size()) - 1];
}

absl::StatusOr<Burst> RunBurst(const BurstOptions& options, int workers,
                               Workload* workload) {
  RETURN_IF_ERROR(RunWorkers(workers, workload, [&](int steps) {
                    return steps < options.warm_up_steps;
                  }).status());
  const std::vector<pid_t> processes = workload->processes();
  Burst burst;
  const double cpu_before_s = CpuSeconds(processes);
  const absl::Time end = SystemClock()->Now() + options.time;
  ASSIGN_OR_RETURN(burst.step_s, RunWorkers(workers, workload, [&](int steps) {
                     return steps < options.min_steps ||
                            SystemClock()->Now() < end;
                   }));
  burst.cpu_s = CpuSeconds(processes) - cpu_before_s;
  std::sort(burst.step_s.begin(), burst.step_s.end());
  RETURN_IF_ERROR(workload->Check());
  return burst;
}

}  // namespace muster
