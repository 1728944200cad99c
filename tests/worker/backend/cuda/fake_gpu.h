#ifndef TESTS_WORKER_BACKEND_CUDA_FAKE_GPU_H_
#define TESTS_WORKER_BACKEND_CUDA_FAKE_GPU_H_

#include <string>

#include "tests/worker/backend/cuda/failing_calls.h"
#include "tests/worker/backend/cuda/fake_cublas.h"
#include "tests/worker/backend/cuda/fake_cuda.h"
#include "tests/worker/backend/cuda/fake_cudnn.h"
#include "tests/worker/backend/cuda/fake_nccl.h"
#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// Cards with all libraries, on the host: what is asked of them is computed, by
// the same kernels, compiled for the host. Thread-safe.
class FakeGpu {
 public:
  // Kernels are run whatever options.run_kernel is.
  explicit FakeGpu(FakeCuda::Options options = FakeCuda::Options());

  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  // Outlived by this.
  const GpuFunctions& functions() const { return functions_; }
  FakeCuda& cuda() { return cuda_; }
  // Every call goes through it.
  FailingCalls& calls() { return calls_; }

  // All that was made and not destroyed; empty: nothing.
  std::string Leaks() const;

 private:
  FakeCuda cuda_;
  FakeCudnn cudnn_;
  FakeCublas cublas_;
  FakeNccl nccl_;
  FailingCalls calls_;
  GpuFunctions functions_;
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_FAKE_GPU_H_
