#ifndef TESTS_WORKER_BACKEND_CUDA_FAKE_CUDA_H_
#define TESTS_WORKER_BACKEND_CUDA_FAKE_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/worker/backend/cuda/fake_queues.h"
#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// The CUDA runtime on the host: memory, streams and kernels of devices that are
// not there, with CUDA's rules; what CUDA refuses, it refuses with the same
// code. Device memory cannot be touched but by work in a stream: the host that
// reads or writes it dies at once. Streams: FakeQueues. Thread-safe.
//
// Work goes only into the streams of the calling thread's current device: CUDA
// says so of kernels, DeviceStreams of everything. Waiting and destroying are
// for every thread.
class FakeCuda {
 public:
  struct Device {
    std::string name = "Fake GPU";
    int major = 9;
    int minor = 0;
    size_t memory_bytes = size_t{1} << 30;
  };
  struct Options {
    // Decides the order in which streams work.
    uint64_t seed = 1;
    std::vector<Device> devices = {Device()};
    // The answer of cudaGetDeviceCount instead.
    cudaError_t no_device = cudaSuccess;
    // The answer of cudaDriverGetVersion; 0: there is none.
    int driver_version = 13000;
    // Calls `thread` for each thread of a grid.
    std::function<void(const std::function<void()>& thread, dim3 blocks,
                       dim3 threads)>
        run_kernel;
  };

  explicit FakeCuda(Options options);
  ~FakeCuda();

  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  // Outlived by this.
  CudaFunctions functions();

  // The calling thread's.
  int current_device() const;

  // For the fakes of the other libraries: work in a stream of any device, which
  // waits until it is ready, if that is not null; asked and done one at a time.
  // InvalidResourceHandle if there is no such stream.
  cudaError_t Enqueue(cudaStream_t stream, std::function<void()> work,
                      std::function<bool()> ready = nullptr);

  // All that was made and not destroyed: "1 stream, 3 allocations"; empty:
  // nothing.
  std::string Leaks() const;
  size_t used_bytes(int device) const;
  // The wishes of threads, and the ranges that nobody but a profiler sees.
  int64_t launches() const;

 private:
  struct Allocation {
    size_t bytes = 0;
    int device = 0;
  };

  // Makes device memory accessible while it lives.
  class Opened;

  int CurrentDevice() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Whether the stream is of a device other than the current one.
  bool IsElsewhere(cudaStream_t stream) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Spoils the capture of this thread, if there is one: CUDA forbids the call
  // there.
  bool ForbiddenInCapture() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsDevice(const void* memory, size_t bytes) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);
  bool IsPinned(const void* memory, size_t bytes) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);

  cudaError_t GetDeviceCount(int* count);
  cudaError_t GetDeviceProperties(cudaDeviceProp* properties, int device);
  cudaError_t SetDevice(int device);
  cudaError_t MemGetInfo(size_t* free, size_t* total);
  cudaError_t Malloc(void** memory, size_t bytes);
  cudaError_t Free(void* memory);
  cudaError_t HostRegister(void* memory, size_t bytes);
  cudaError_t HostUnregister(void* memory);
  cudaError_t Memcpy(void* to, const void* from, size_t bytes,
                     cudaMemcpyKind kind, cudaStream_t stream);
  cudaError_t CopyPageable(void* to, const void* from, size_t bytes,
                           cudaMemcpyKind kind, cudaStream_t stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  cudaError_t Memset(void* memory, int value, size_t bytes,
                     cudaStream_t stream);
  cudaError_t LaunchKernel(const void* kernel, dim3 blocks, dim3 threads,
                           void** arguments, cudaStream_t stream);
  cudaError_t BeginCapture(cudaStream_t stream);
  cudaError_t EndCapture(cudaStream_t stream, cudaGraph_t* graph);
  // A call of the queues that does work. Where it stands still for want of what
  // another thread has yet to put into its streams, it waits for that.
  template <typename Call>
  cudaError_t Working(Call call);

  void AddDeviceFunctions(CudaFunctions* functions);
  void AddMemoryFunctions(CudaFunctions* functions);
  void AddStreamFunctions(CudaFunctions* functions);
  void AddEventFunctions(CudaFunctions* functions);
  void AddGraphFunctions(CudaFunctions* functions);

  // Constant after construction.
  const Options options_;
  // The memory of all devices, one after the other.
  size_t region_bytes_ = 0;
  char* region_ = nullptr;
  std::vector<size_t> device_starts_;

  mutable absl::Mutex mu_;
  FakeQueues queues_ ABSL_GUARDED_BY(mu_);
  std::map<std::thread::id, int> current_ ABSL_GUARDED_BY(mu_);
  std::map<std::thread::id, cudaStream_t> capturing_ ABSL_GUARDED_BY(mu_);
  std::map<const char*, Allocation> allocations_ ABSL_GUARDED_BY(mu_);
  std::vector<size_t> used_ ABSL_GUARDED_BY(mu_);
  std::map<const char*, size_t> pinned_ ABSL_GUARDED_BY(mu_);
  cudaError_t last_error_ ABSL_GUARDED_BY(mu_) = cudaSuccess;
  int64_t launches_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_FAKE_CUDA_H_
