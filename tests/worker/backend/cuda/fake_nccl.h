#ifndef TESTS_WORKER_BACKEND_CUDA_FAKE_NCCL_H_
#define TESTS_WORKER_BACKEND_CUDA_FAKE_NCCL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/worker/backend/cuda/fake_objects.h"
#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// NCCL within one process, on the host: sums and means of float32 over devices,
// added in the order of their ranks. Every rank has a thread and makes its
// calls one by one; a stream goes on only when every rank's has come to the
// same call. Refuses a device twice, and counts that differ. (NCCL has groups,
// for one thread that speaks for several ranks; this fake has not.)
// Thread-safe.
class FakeNccl {
 public:
  // Puts work into a stream, where it waits until it is ready. Works are asked
  // and done one at a time.
  using Enqueue = std::function<cudaError_t(
      cudaStream_t, std::function<void()> work, std::function<bool()> ready)>;

  // `cuda` knows the devices.
  FakeNccl(CudaFunctions cuda, Enqueue enqueue)
      : cuda_(std::move(cuda)), enqueue_(std::move(enqueue)) {}

  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  // Outlived by this.
  NcclFunctions functions();

  // "2 communicators"; empty: nothing.
  std::string Leaks() const;

 private:
  // Those that were made together, and the call at which they meet. Of the
  // works, which are done one at a time.
  struct Clique {
    std::vector<std::vector<float>> brought;
    std::vector<bool> has_brought;
    int num_taken = 0;
    std::atomic<bool> is_aborted{false};
    // The last call's.
    std::atomic<cudaStream_t> stream{nullptr};

    bool IsWhole() const;
  };
  struct Communicator {
    std::shared_ptr<Clique> clique;
    int rank = 0;
  };

  template <typename... Arguments>
  std::function<ncclResult_t(Arguments...)> Bind(
      ncclResult_t (FakeNccl::*method)(Arguments...)) {
    return [this, method](Arguments... arguments) {
      return (this->*method)(arguments...);
    };
  }

  // The functions of NCCL, by their names.
  ncclResult_t CommInitAll(ncclComm_t* communicators, int count,
                           const int* devices);
  ncclResult_t CommDestroy(ncclComm_t communicator);
  ncclResult_t CommAbort(ncclComm_t communicator);
  ncclResult_t AllReduce(const void* from, void* to, size_t count,
                         ncclDataType_t type, ncclRedOp_t operation,
                         ncclComm_t communicator, cudaStream_t stream);

  // Constant after construction.
  const CudaFunctions cuda_;
  const Enqueue enqueue_;

  mutable absl::Mutex mu_;
  FakeObjects<ncclComm_t, Communicator> communicators_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_FAKE_NCCL_H_
