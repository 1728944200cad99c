#ifndef WORKER_BACKEND_CPU_CPU_THREADS_H_
#define WORKER_BACKEND_CPU_CPU_THREADS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace muster {

// Threads of the cpu backend: one team for each thread that calls, oneDNN's and
// ours. oneDNN is built on OpenMP; the six functions of its library that it
// calls are defined here. libgomp's own spin for milliseconds while they wait,
// and a job waits until each of them has had a core: beside other processes two
// threads were a tenth as fast as one. Here who waits soon sleeps, and a part
// that no other thread has begun is computed by the caller.

// Lets primitives of oneDNN that the calling thread makes or executes use
// `threads` threads. The number is kept per calling thread, so it is said
// before each of them; it costs a store.
void UseComputeThreads(int threads);

// Calls body(begin, end) for `threads` consecutive ranges that together are
// [0, n), in parallel; for one range where n < `grain`. The division depends on
// the arguments alone, so results do not change between runs.
// REQUIRES: `body` throws nothing, and calls neither this nor ForEachThread.
void ParallelFor(int threads, int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);

// The same for `threads` ranges whatever n is, some of them then empty: a body
// with memory of its own is told which it is, 0 to `threads` - 1.
void ForEachThread(
    int threads, int64_t n,
    absl::FunctionRef<void(int64_t thread, int64_t begin, int64_t end)> body);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_CPU_THREADS_H_
