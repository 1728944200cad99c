#include "worker/backend/cuda/nccl_mean.h"

#include <cassert>
#include <set>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/gpu_status.h"

namespace muster {

absl::StatusOr<std::unique_ptr<NcclMean>> NcclMean::Create(
    std::vector<CudaDevice*> devices) {
  assert(!devices.empty());
  auto mean = absl::WrapUnique(new NcclMean(std::move(devices)));
  RETURN_IF_ERROR(mean->CheckDevices());
  std::vector<int> ordinals;
  for (const CudaDevice* device : mean->devices_) {
    ordinals.push_back(device->ordinal());
  }
  const NcclFunctions& nccl = mean->gpu().nccl;
  RETURN_IF_ERROR(CheckNccl(
      mean->gpu(),
      nccl.CommInitAll(mean->comms_.data(), static_cast<int>(ordinals.size()),
                       ordinals.data()),
      [&] { return absl::StrCat("connect ", mean->Names(), " by NCCL"); }));
  return mean;
}

// What fails here has failed before, or harms nobody any more.
NcclMean::~NcclMean() {
  for (const ncclComm_t comm : comms_) {
    if (comm != nullptr) gpu().nccl.CommDestroy(comm);
  }
}

std::string NcclMean::Names() const {
  return absl::StrJoin(devices_, ", ",
                       [](std::string* to, const CudaDevice* device) {
                         absl::StrAppend(to, device->name());
                       });
}

absl::Status NcclMean::CheckDevices() const {
  if (gpu().nccl.CommInitAll == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("connect ", Names(),
                     ": found no libnccl.so.2; install NCCL, or name "
                     "its folder in --gpu_library_path"));
  }
  std::set<int> ordinals;
  for (const CudaDevice* device : devices_) {
    if (ordinals.insert(device->ordinal()).second) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "connect ", Names(), " by NCCL: wanted one device a card, found card ",
        device->ordinal(), " twice"));
  }
  return absl::OkStatus();
}

absl::Status NcclMean::Check(ncclResult_t error, int64_t elements) const {
  return CheckNccl(gpu(), error, [&] {
    return absl::StrCat("mean of ", elements, " elements over ", Names());
  });
}

ncclResult_t NcclMean::PutAll(absl::Span<float* const> memory,
                              int64_t elements) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    const ncclResult_t error =
        gpu().nccl.AllReduce(memory[i], memory[i], elements, ncclFloat32,
                             ncclAvg, comms_[i], devices_[i]->stream());
    if (error != ncclSuccess) return error;
  }
  return ncclSuccess;
}

absl::Status NcclMean::Run(absl::Span<float* const> memory, int64_t elements) {
  assert(memory.size() == devices_.size());
  // One thread speaks for all devices: outside of a group the first call would
  // wait for the others for ever.
  RETURN_IF_ERROR(Check(gpu().nccl.GroupStart(), elements));
  const absl::Status put = Check(PutAll(memory, elements), elements);
  const absl::Status ended = Check(gpu().nccl.GroupEnd(), elements);
  return put.ok() ? ended : put;
}

}  // namespace muster
