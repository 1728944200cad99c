#include "worker/backend/cpu/cpu_threads.h"

// As in <omp.h>, which clang (it checks our annotations) does not have.
extern "C" void omp_set_num_threads(int threads);

namespace muster {

void UseComputeThreads(int threads) { omp_set_num_threads(threads); }

void ParallelFor(int threads, int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (threads == 1 || n < grain) {
    body(0, n);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) {
    body(n * thread / threads, n * (thread + 1) / threads);
  }
}

void ForEachThread(
    int threads, int64_t n,
    absl::FunctionRef<void(int64_t thread, int64_t begin, int64_t end)> body) {
  ParallelFor(threads, threads, threads, [&](int64_t first, int64_t last) {
    for (int64_t thread = first; thread < last; ++thread) {
      body(thread, n * thread / threads, n * (thread + 1) / threads);
    }
  });
}

}  // namespace muster
