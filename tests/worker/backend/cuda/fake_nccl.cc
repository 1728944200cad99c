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
  functions.GroupStart = Bind(&FakeNccl::GroupStart);
  functions.GroupEnd = Bind(&FakeNccl::GroupEnd);
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
  ++cliques_;
  for (int rank = 0; rank < count; ++rank) {
    communicators[rank] = communicators_.Make({cliques_, rank, count});
  }
  return ncclSuccess;
}

ncclResult_t FakeNccl::CommDestroy(ncclComm_t communicator) {
  const absl::MutexLock lock(&mu_);
  return communicators_.Destroy(communicator) ? ncclSuccess
                                              : ncclInvalidArgument;
}

ncclResult_t FakeNccl::GroupStart() {
  const absl::MutexLock lock(&mu_);
  ++groups_[std::this_thread::get_id()].depth;
  return ncclSuccess;
}

ncclResult_t FakeNccl::AllReduce(const void* from, void* to, size_t count,
                                 ncclDataType_t type, ncclRedOp_t operation,
                                 ncclComm_t communicator, cudaStream_t stream) {
  std::vector<Call> alone;
  {
    const absl::MutexLock lock(&mu_);
    const Communicator* const by = communicators_.Find(communicator);
    if (by == nullptr || from == nullptr || to == nullptr) {
      return ncclInvalidArgument;
    }
    // NCCL has more of both; this fake has not.
    if (type != ncclFloat32) return ncclInvalidArgument;
    if (operation != ncclSum && operation != ncclAvg) {
      return ncclInvalidArgument;
    }
    const Call call = {*by,
                       static_cast<const float*>(from),
                       static_cast<float*>(to),
                       count,
                       operation,
                       stream};
    Group& group = groups_[std::this_thread::get_id()];
    if (group.depth > 0) {
      group.calls.push_back(call);
      return ncclSuccess;
    }
    if (by->ranks > 1) return ncclInvalidUsage;
    alone.push_back(call);
  }
  return Start(alone);
}

ncclResult_t FakeNccl::GroupEnd() {
  std::vector<Call> calls;
  {
    const absl::MutexLock lock(&mu_);
    Group& group = groups_[std::this_thread::get_id()];
    if (group.depth == 0) return ncclInvalidUsage;
    if (--group.depth > 0) return ncclSuccess;
    calls.swap(group.calls);
  }
  std::map<int, std::vector<Call>> cliques;
  for (const Call& call : calls) cliques[call.by.clique].push_back(call);
  for (auto& [clique, together] : cliques) {
    std::sort(
        together.begin(), together.end(),
        [](const Call& a, const Call& b) { return a.by.rank < b.by.rank; });
    const ncclResult_t error = Start(together);
    if (error != ncclSuccess) return error;
  }
  return ncclSuccess;
}

ncclResult_t FakeNccl::Start(const std::vector<Call>& calls) {
  if (static_cast<int>(calls.size()) != calls[0].by.ranks) {
    return ncclInvalidUsage;
  }
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    const Call& call = calls[rank];
    if (call.by.rank != static_cast<int>(rank)) return ncclInvalidUsage;
    if (call.count != calls[0].count) return ncclInvalidUsage;
    if (call.operation != calls[0].operation) return ncclInvalidUsage;
  }
  return Meet(calls) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

// Each stream brings its values, waits for all others', and then takes what
// they give together.
cudaError_t FakeNccl::Meet(const std::vector<Call>& calls) {
  using Values = std::vector<std::vector<float>>;
  const auto brought = std::make_shared<Values>(calls.size());
  std::vector<cudaEvent_t> events(calls.size());
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    const Call& call = calls[rank];
    cudaError_t error = enqueue_(call.stream, [brought, rank, call] {
      (*brought)[rank].assign(call.from, call.from + call.count);
    });
    if (error != cudaSuccess) return error;
    error = cuda_.EventCreateWithFlags(&events[rank], cudaEventDisableTiming);
    if (error != cudaSuccess) return error;
    error = cuda_.EventRecordWithFlags(events[rank], call.stream,
                                       cudaEventRecordDefault);
    if (error != cudaSuccess) return error;
  }
  for (const Call& call : calls) {
    for (const cudaEvent_t event : events) {
      const cudaError_t error = cuda_.StreamWaitEvent(call.stream, event, 0);
      if (error != cudaSuccess) return error;
    }
    const cudaError_t error = enqueue_(call.stream, [brought, call] {
      for (size_t i = 0; i < call.count; ++i) {
        float sum = 0;
        for (const std::vector<float>& values : *brought) sum += values[i];
        call.to[i] = call.operation == ncclAvg
                         ? sum / static_cast<float>(brought->size())
                         : sum;
      }
    });
    if (error != cudaSuccess) return error;
  }
  for (const cudaEvent_t event : events) cuda_.EventDestroy(event);
  return cudaSuccess;
}

}  // namespace muster
