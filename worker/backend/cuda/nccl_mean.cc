#include "worker/backend/cuda/nccl_mean.h"

#include <set>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/gpu_status.h"

namespace muster {
namespace {

bool AreOnDistinctCards(const std::vector<CudaDevice*>& devices) {
  std::set<int> ordinals;
  for (const CudaDevice* device : devices) ordinals.insert(device->ordinal());
  return ordinals.size() == devices.size();
}

}  // namespace

absl::StatusOr<std::unique_ptr<NcclMean>> NcclMean::Create(
    std::vector<CudaDevice*> devices, absl::Duration patience,
    const Clock* clock) {
  const GpuFunctions& gpu = devices.front()->gpu();
  if (gpu.nccl.CommInitAll == nullptr || !AreOnDistinctCards(devices)) {
    return nullptr;
  }
  auto mean =
      absl::WrapUnique(new NcclMean(std::move(devices), patience, clock));
  std::vector<int> ordinals;
  for (const CudaDevice* device : mean->devices_) {
    ordinals.push_back(device->ordinal());
  }
  absl::MutexLock lock(&mean->mu_);
  RETURN_IF_ERROR(CheckNccl(
      gpu,
      gpu.nccl.CommInitAll(mean->comms_.data(),
                           static_cast<int>(ordinals.size()), ordinals.data()),
      [&] { return absl::StrCat("connect ", mean->Names(), " by NCCL"); }));
  return mean;
}

NcclMean::~NcclMean() { EndAll(/*abort=*/false); }

std::vector<ncclComm_t> NcclMean::TakeAll() {
  absl::MutexLock lock(&mu_);
  std::vector<ncclComm_t> taken(comms_.size());
  // Nobody begins a call from now on.
  taken.swap(comms_);
  const auto is_idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return calls_ == 0;
  };
  clock_->Await(&mu_, absl::Condition(&is_idle), patience_);
  return taken;
}

// A failure here has been one before, or harms nobody any more.
void NcclMean::EndAll(bool abort) {
  for (const ncclComm_t comm : TakeAll()) {
    if (comm == nullptr) continue;
    if (abort) {
      gpu().nccl.CommAbort(comm);
    } else {
      gpu().nccl.CommDestroy(comm);
    }
  }
}

void NcclMean::Abort() {
  DeviceMean::Abort();
  EndAll(/*abort=*/true);
}

std::string NcclMean::Names() const {
  return absl::StrJoin(devices_, ", ",
                       [](std::string* to, const CudaDevice* device) {
                         absl::StrAppend(to, device->name());
                       });
}

// Each member has a thread, and with it a communicator, of its own: no call
// waits for another, but the devices do.
absl::Status NcclMean::Average(int member, float* data, int64_t elements) {
  ncclComm_t comm = nullptr;
  {
    absl::MutexLock lock(&mu_);
    comm = comms_[member];
    if (comm != nullptr) ++calls_;
  }
  const auto describe = [&] {
    return absl::StrCat("mean of ", elements, " elements over ", Names());
  };
  if (comm == nullptr) {
    return absl::InternalError(
        absl::StrCat(describe(), ": another device has failed before"));
  }
  const ncclResult_t result =
      gpu().nccl.AllReduce(data, data, elements, ncclFloat32, ncclAvg, comm,
                           devices_[member]->streams().to_host());
  {
    absl::MutexLock lock(&mu_);
    --calls_;
  }
  return CheckNccl(gpu(), result, describe);
}

}  // namespace muster
