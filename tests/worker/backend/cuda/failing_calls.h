#ifndef TESTS_WORKER_BACKEND_CUDA_FAILING_CALLS_H_
#define TESTS_WORKER_BACKEND_CUDA_FAILING_CALLS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// Counts the calls that go through a table of functions, and lets the n-th fail
// instead of being made: each of CUDA, cuDNN, cuBLASLt and NCCL that returns a
// code. What they allocate on the host is theirs (AllocationPause).
// Thread-safe.
class FailingCalls {
 public:
  // Outlived by this.
  GpuFunctions Wrap(GpuFunctions functions);

  // Starts to count from 0; call number `fail_at` (from 1) fails, 0: none.
  void Reset(int64_t fail_at);
  int64_t calls() const;
  // "cudaMalloc" of the one that failed; empty: none did.
  std::string failed() const;
  // By name, how often it was called since this was made.
  absl::flat_hash_map<std::string, int64_t> counts() const;
  // Those of them that made something: memory, pinned memory, streams,
  // events, graphs, handles or descriptors.
  int64_t calls_that_make() const;

 private:
  // Whether this call is to fail.
  bool Fails(const char* name);
  template <typename Result, typename... Arguments>
  void WrapOne(std::function<Result(Arguments...)>* function, const char* name);

  mutable absl::Mutex mu_;
  int64_t calls_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t fail_at_ ABSL_GUARDED_BY(mu_) = 0;
  std::string failed_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, int64_t> counts_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_FAILING_CALLS_H_
