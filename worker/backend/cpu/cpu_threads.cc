#include "worker/backend/cpu/cpu_threads.h"

#include <cassert>
#include <memory>

#include "common/base/thread_team.h"
#include "worker/backend/cpu/part_barrier.h"

namespace muster {
namespace {

// One of the parts of a job, as the thread that computes it sees it.
struct Part {
  int index = 0;
  int count = 1;
  PartBarrier* barrier = nullptr;  // null outside of every job
};

// The calling thread's. The team is as large as its largest job.
thread_local int compute_threads = 1;
thread_local Part current_part;
thread_local std::unique_ptr<ThreadTeam> team;

bool IsInAJob() { return current_part.barrier != nullptr; }

// Calls body(part) for each part of a new job.
void RunJob(int parts, absl::FunctionRef<void(int part)> body) {
  assert(!IsInAJob());
  if (team == nullptr || team->threads() < parts) {
    team.reset();
    team =
        std::make_unique<ThreadTeam>(parts, ThreadTeam::Wait::kSpinningFirst);
  }
  PartBarrier barrier(parts);
  team->Run(parts, [&](int part) {
    current_part = {part, parts, &barrier};
    body(part);
    current_part = Part();
  });
}

}  // namespace

void UseComputeThreads(int threads) { compute_threads = threads; }

void ParallelFor(int threads, int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (threads == 1 || n < grain) {
    body(0, n);
    return;
  }
  RunJob(threads,
         [&](int part) { body(n * part / threads, n * (part + 1) / threads); });
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

// The functions of OpenMP that oneDNN 2.6.3 calls: these stand before
// libgomp's, which the dynamic linker finds later.
extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads,
                   unsigned /*flags*/) {
  const int parts =
      threads == 0 ? muster::compute_threads : static_cast<int>(threads);
  if (parts > 1 && !muster::IsInAJob()) {
    muster::RunJob(parts, [&](int) { body(data); });
    return;
  }
  // A job within a job has one part.
  const muster::Part outer = muster::current_part;
  muster::current_part.index = 0;
  muster::current_part.count = 1;
  body(data);
  muster::current_part = outer;
}

void GOMP_barrier() {
  if (muster::current_part.count > 1) muster::current_part.barrier->Await();
}

int omp_get_thread_num() { return muster::current_part.index; }

int omp_get_num_threads() { return muster::current_part.count; }

int omp_in_parallel() { return muster::IsInAJob() ? 1 : 0; }

int omp_get_max_threads() {
  return muster::IsInAJob() ? muster::current_part.count
                            : muster::compute_threads;
}

}  // extern "C"
