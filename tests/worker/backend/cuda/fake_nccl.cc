#include "tests/worker/backend/cuda/fake_nccl.h"

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"

namespace muster {

NcclFunctions FakeNccl::functions() {
  NcclFunctions functions;
  functions.GetErrorString = [](ncclResult_t error) {
    switch (error) {
      case ncclSuccess:
        return "no error";
      case ncclInvalidArgument:
        return "invalid argument";
      case ncclInvalidUsage:
        return "invalid usage";
      default:
        return "unhandled cuda error";
    }
  };
  functions.CommInitAll = Bind(&FakeNccl::CommInitAll);
  functions.CommDestroy = Bind(&FakeNccl::CommDestroy);
  functions.CommAbort = Bind(&FakeNccl::CommAbort);
  functions.AllReduce = Bind(&FakeNccl::AllReduce);
  return functions;
}

std::string FakeNccl::Leaks() const {
  const absl::MutexLock lock(&mu_);
  const size_t alive = communicators_.alive();
  if (alive == 0) return "";
  return absl::StrCat(alive, alive == 1 ? " communicator" : " communicators");
}

ncclResult_t FakeNccl::CommInitAll(ncclComm_t* communicators, int count,
                                   const int* devices) {
  int cards = 0;
  if (cuda_.GetDeviceCount(&cards) != cudaSuccess) {
    return ncclUnhandledCudaError;
  }
  if (communicators == nullptr || count < 1) return ncclInvalidArgument;
  std::set<int> used;
  for (int rank = 0; rank < count; ++rank) {
    const int device = devices == nullptr ? rank : devices[rank];
    if (device < 0 || device >= cards) return ncclInvalidArgument;
    // A device takes part once.
    if (!used.insert(device).second) return ncclInvalidUsage;
  }
  const absl::MutexLock lock(&mu_);
  const auto clique = std::make_shared<Clique>();
  clique->brought.resize(count);
  clique->has_brought.resize(count, false);
  for (int rank = 0; rank < count; ++rank) {
    communicators[rank] = communicators_.Make({clique, rank});
  }
  return ncclSuccess;
}

ncclResult_t FakeNccl::CommDestroy(ncclComm_t communicator) {
  const absl::MutexLock lock(&mu_);
  return communicators_.Destroy(communicator) ? ncclSuccess
                                              : ncclInvalidArgument;
}

// Whoever waits for this rank goes on, with values of no meaning.
ncclResult_t FakeNccl::CommAbort(ncclComm_t communicator) {
  std::shared_ptr<Clique> clique;
  {
    const absl::MutexLock lock(&mu_);
    const Communicator* const found = communicators_.Find(communicator);
    if (found == nullptr) return ncclInvalidArgument;
    clique = found->clique;
  }
  clique->is_aborted = true;
  // So that somebody looks.
  enqueue_(
      clique->stream, [] {}, nullptr);
  return CommDestroy(communicator);
}

bool FakeNccl::Clique::IsWhole() const {
  return std::all_of(has_brought.begin(), has_brought.end(),
                     [](bool has) { return has; });
}

// Each stream brings its values, waits for all others', and then takes what
// they give together; when all have, the next call may begin.
ncclResult_t FakeNccl::AllReduce(const void* from, void* to, size_t count,
                                 ncclDataType_t type, ncclRedOp_t operation,
                                 ncclComm_t communicator, cudaStream_t stream) {
  Communicator by;
  {
    const absl::MutexLock lock(&mu_);
    const Communicator* const found = communicators_.Find(communicator);
    if (found == nullptr || from == nullptr || to == nullptr) {
      return ncclInvalidArgument;
    }
    by = *found;
  }
  // NCCL has more of both; this fake has not.
  if (type != ncclFloat32) return ncclInvalidArgument;
  if (operation != ncclSum && operation != ncclAvg) return ncclInvalidArgument;
  const auto bring = [by, values = static_cast<const float*>(from), count] {
    by.clique->brought[by.rank].assign(values, values + count);
    by.clique->has_brought[by.rank] = true;
  };
  const auto take = [by, values = static_cast<float*>(to), count, operation] {
    Clique& clique = *by.clique;
    const size_t ranks = clique.brought.size();
    for (size_t i = 0; i < count && !clique.is_aborted; ++i) {
      float sum = 0;
      // A rank with another count would make garbage.
      for (const auto& brought : clique.brought) sum += brought.at(i);
      values[i] = operation == ncclAvg ? sum / static_cast<float>(ranks) : sum;
    }
    if (++clique.num_taken < static_cast<int>(ranks)) return;
    clique.num_taken = 0;
    std::fill(clique.has_brought.begin(), clique.has_brought.end(), false);
  };
  by.clique->stream = stream;
  cudaError_t error = enqueue_(stream, bring, [by] {
    return by.clique->is_aborted || !by.clique->has_brought[by.rank];
  });
  if (error == cudaSuccess) {
    error = enqueue_(stream, take, [by] {
      return by.clique->is_aborted || by.clique->IsWhole();
    });
  }
  return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

}  // namespace muster
