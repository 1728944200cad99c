#ifndef TESTS_WORKER_BACKEND_CUDA_FAKE_NCCL_H_
#define TESTS_WORKER_BACKEND_CUDA_FAKE_NCCL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/worker/backend/cuda/fake_objects.h"
#include "worker/backend/cuda/gpu_functions.h"

namespace muster {

// NCCL within one process, on the host: sums and means of float32 over devices,
// added in the order of their ranks. A stream goes on only when every rank's
// has come to the same call. What would wait for ever, or make garbage, is
// refused: a call of one of several ranks outside of a group, counts that
// differ, a group without one call of each rank. (NCCL takes several in a
// group, and several threads; this fake does not.) Thread-safe.
class FakeNccl {
 public:
  // Puts work into a stream.
  using Enqueue =
      std::function<cudaError_t(cudaStream_t, std::function<void()>)>;

  // `cuda` has the events of the streams.
  FakeNccl(CudaFunctions cuda, Enqueue enqueue)
      : cuda_(std::move(cuda)), enqueue_(std::move(enqueue)) {}

  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  // Outlived by this.
  NcclFunctions functions();

  // "2 communicators"; empty: nothing.
  std::string Leaks() const;

 private:
  struct Communicator {
    // The same for those that were made together.
    int clique = 0;
    int rank = 0;
    int ranks = 0;
  };
  struct Call {
    Communicator by;
    const float* from;
    float* to;
    size_t count;
    ncclRedOp_t operation;
    cudaStream_t stream;
  };
  // Of one thread.
  struct Group {
    int depth = 0;
    std::vector<Call> calls;
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
  ncclResult_t GroupStart();
  ncclResult_t GroupEnd();
  ncclResult_t AllReduce(const void* from, void* to, size_t count,
                         ncclDataType_t type, ncclRedOp_t operation,
                         ncclComm_t communicator, cudaStream_t stream);

  // `calls` are a clique's in a group, by rank.
  ncclResult_t Start(const std::vector<Call>& calls);
  cudaError_t Meet(const std::vector<Call>& calls);

  // Constant after construction.
  const CudaFunctions cuda_;
  const Enqueue enqueue_;

  mutable absl::Mutex mu_;
  FakeObjects<ncclComm_t, Communicator> communicators_ ABSL_GUARDED_BY(mu_);
  int cliques_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::thread::id, Group> groups_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_FAKE_NCCL_H_
