#ifndef WORKER_BACKEND_CUDA_NCCL_MEAN_H_
#define WORKER_BACKEND_CUDA_NCCL_MEAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/backend/cuda/cuda_device.h"
#include "worker/backend/device_mean.h"

namespace muster {

// The mean of what several cards of this process have computed, made by NCCL on
// the cards themselves: the same bits on all of them.
class NcclMean : public DeviceMean {
 public:
  // Null if two devices are parts of one card, which NCCL takes once only, or
  // if NCCL is not installed. `devices` outlive this. Errors: Internal with
  // what NCCL says.
  static absl::StatusOr<std::unique_ptr<NcclMean>> Create(
      std::vector<CudaDevice*> devices);
  ~NcclMean() override;

  absl::Status Average(int member, float* data, int64_t elements) override;
  void Abort() override;

 private:
  explicit NcclMean(std::vector<CudaDevice*> devices)
      : DeviceMean(static_cast<int>(devices.size())),
        devices_(std::move(devices)),
        comms_(devices_.size()) {}

  const GpuFunctions& gpu() const { return devices_[0]->gpu(); }
  // "cuda:0, cuda:1".
  std::string Names() const;
  void EndAll(bool abort);

  const std::vector<CudaDevice*> devices_;

  absl::Mutex mu_;
  // By member; null until it is made, and after Abort.
  std::vector<ncclComm_t> comms_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_NCCL_MEAN_H_
