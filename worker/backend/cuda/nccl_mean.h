#ifndef WORKER_BACKEND_CUDA_NCCL_MEAN_H_
#define WORKER_BACKEND_CUDA_NCCL_MEAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/backend/cuda/cuda_device.h"
#include "worker/backend/device_mean.h"

namespace muster {

// The mean of what several cards of this process have computed, made by NCCL on
// the cards themselves: the same bits on all of them.
//
// NCCL forbids two threads on one communicator, and the last abort frees what
// all have in common. So an abort lets no call begin, and waits for those that
// other members are within. They put work into a stream and return; but one
// that connects first, or finds its stream full, waits for the other members,
// and only an abort ends that. Hence the wait has an end, after which all are
// aborted: then a process whose training has failed may crash instead of
// hanging. (ncclCommRevoke has no leave either to be called by another thread.)
class NcclMean : public DeviceMean {
 public:
  // How long an abort waits for calls of other members.
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // Null if two devices are parts of one card, which NCCL takes once only, or
  // if NCCL is not installed. `devices` and `clock` outlive this. Errors:
  // Internal with what NCCL says.
  static absl::StatusOr<std::unique_ptr<NcclMean>> Create(
      std::vector<CudaDevice*> devices, absl::Duration patience = kPatience,
      const Clock* clock = SystemClock());
  ~NcclMean() override;

  absl::Status Average(int member, float* data, int64_t elements) override;
  void Abort() override;

 private:
  NcclMean(std::vector<CudaDevice*> devices, absl::Duration patience,
           const Clock* clock)
      : DeviceMean(static_cast<int>(devices.size())),
        devices_(std::move(devices)),
        patience_(patience),
        clock_(clock),
        comms_(devices_.size()) {}

  const GpuFunctions& gpu() const { return devices_[0]->gpu(); }
  // "cuda:0, cuda:1".
  std::string Names() const;
  void EndAll(bool abort);
  // Leaves none; returns when no call uses them, or patience is over.
  std::vector<ncclComm_t> TakeAll();

  const std::vector<CudaDevice*> devices_;
  const absl::Duration patience_;
  const Clock* const clock_;

  absl::Mutex mu_;
  // By member; null until it is made, and after Abort.
  std::vector<ncclComm_t> comms_ ABSL_GUARDED_BY(mu_);
  // The members' calls of NCCL that have not returned.
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_NCCL_MEAN_H_
