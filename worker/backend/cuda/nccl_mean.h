#ifndef WORKER_BACKEND_CUDA_NCCL_MEAN_H_
#define WORKER_BACKEND_CUDA_NCCL_MEAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/backend/cuda/cuda_device.h"

namespace muster {

// The mean of what several cards of this process have computed, made by NCCL on
// the cards themselves. One thread.
class NcclMean {
 public:
  // `devices` outlive this. Errors: Unavailable if NCCL is not installed;
  // InvalidArgument if two devices are one card, which NCCL takes once only;
  // Internal with what NCCL says.
  static absl::StatusOr<std::unique_ptr<NcclMean>> Create(
      std::vector<CudaDevice*> devices);
  ~NcclMean();

  NcclMean(const NcclMean&) = delete;
  NcclMean& operator=(const NcclMean&) = delete;

  // Puts into kCompute of every device: of the `elements` at memory[i], device
  // i's, each becomes its mean over the devices, the same bits on all of them.
  // After an error this is of no more use.
  // REQUIRES: one of `memory` a device.
  absl::Status Run(absl::Span<float* const> memory, int64_t elements);

 private:
  explicit NcclMean(std::vector<CudaDevice*> devices)
      : devices_(std::move(devices)), comms_(devices_.size()) {}

  const GpuFunctions& gpu() const { return devices_[0]->gpu(); }
  // "cuda:0, cuda:1".
  std::string Names() const;
  absl::Status CheckDevices() const;
  absl::Status Check(ncclResult_t error, int64_t elements) const;
  ncclResult_t PutAll(absl::Span<float* const> memory, int64_t elements);

  const std::vector<CudaDevice*> devices_;
  // Null until it is made.
  std::vector<ncclComm_t> comms_;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_NCCL_MEAN_H_
