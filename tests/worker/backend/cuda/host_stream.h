#ifndef TESTS_WORKER_BACKEND_CUDA_HOST_STREAM_H_
#define TESTS_WORKER_BACKEND_CUDA_HOST_STREAM_H_

#include "worker/backend/cuda/gpu_functions.h"
#include "worker/backend/cuda/kernel_launch.h"

namespace muster {

// A stream for launchers alone: kernels run at once, in host memory. What
// streams, copies and captures want is FakeCuda.
class HostStream {
 public:
  HostStream();

  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  // Outlived by this.
  KernelStream get() const { return {&gpu_, nullptr}; }

  // Kernels that were launched.
  int launches() const { return launches_; }
  // The launch after so many more is refused.
  void FailAfter(int launches) { fail_at_ = launches_ + launches; }

 private:
  GpuFunctions gpu_;
  int launches_ = 0;
  int fail_at_ = -1;
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_HOST_STREAM_H_
