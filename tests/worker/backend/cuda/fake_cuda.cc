#include "tests/worker/backend/cuda/fake_cuda.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "worker/backend/cuda/host_kernel.h"

namespace muster {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kPage = 4096;
// A device that does nothing for so long hangs.
constexpr absl::Duration kPatience = absl::Seconds(20);
// NaN in every type: what nobody wrote shows.
constexpr int kPoison = 0xff;

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Whether one of `ranges`, by their first bytes, holds all of these.
template <typename Map, typename SizeOf>
bool Covers(const Map& ranges, const void* memory, size_t bytes,
            SizeOf size_of) {
  const char* const begin = static_cast<const char*>(memory);
  auto range = ranges.upper_bound(begin);
  if (range == ranges.begin()) return false;
  --range;
  return begin + bytes <= range->first + size_of(range->second);
}

}  // namespace

class FakeCuda::Opened {
 public:
  explicit Opened(const FakeCuda& cuda) : cuda_(cuda) {
    mprotect(cuda_.region_, cuda_.region_bytes_, PROT_READ | PROT_WRITE);
  }
  ~Opened() { mprotect(cuda_.region_, cuda_.region_bytes_, PROT_NONE); }

 private:
  const FakeCuda& cuda_;
};

FakeCuda::FakeCuda(Options options)
    : options_(std::move(options)), queues_(options_.seed) {
  for (const Device& device : options_.devices) {
    device_starts_.push_back(region_bytes_);
    region_bytes_ += RoundUp(device.memory_bytes, kPage);
  }
  used_.resize(options_.devices.size(), 0);
  region_bytes_ = std::max(region_bytes_, kPage);
  void* const region =
      mmap(nullptr, region_bytes_, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, 0);
  if (region == MAP_FAILED) {
    std::perror("FakeCuda: mmap");
    std::abort();
  }
  region_ = static_cast<char*>(region);
}

FakeCuda::~FakeCuda() { munmap(region_, region_bytes_); }

int FakeCuda::current_device() const {
  const absl::MutexLock lock(&mu_);
  return CurrentDevice();
}

int FakeCuda::CurrentDevice() const {
  const auto found = current_.find(std::this_thread::get_id());
  return found == current_.end() ? 0 : found->second;
}

bool FakeCuda::IsElsewhere(cudaStream_t stream) const {
  const int device = queues_.DeviceOf(stream);
  return device >= 0 && device != CurrentDevice();
}

bool FakeCuda::ForbiddenInCapture() {
  const auto found = capturing_.find(std::this_thread::get_id());
  if (found == capturing_.end()) return false;
  queues_.SpoilCapture(found->second);
  return true;
}

bool FakeCuda::IsDevice(const void* memory, size_t bytes) const {
  return Covers(allocations_, memory, bytes,
                [](const Allocation& allocation) { return allocation.bytes; });
}

bool FakeCuda::IsPinned(const void* memory, size_t bytes) const {
  return Covers(pinned_, memory, bytes, [](size_t size) { return size; });
}

cudaError_t FakeCuda::GetDeviceCount(int* count) {
  *count = 0;
  if (options_.no_device != cudaSuccess) return options_.no_device;
  if (options_.devices.empty()) return cudaErrorNoDevice;
  *count = static_cast<int>(options_.devices.size());
  return cudaSuccess;
}

cudaError_t FakeCuda::GetDeviceProperties(cudaDeviceProp* properties,
                                          int device) {
  if (device < 0 || device >= static_cast<int>(options_.devices.size())) {
    return cudaErrorInvalidDevice;
  }
  const Device& is = options_.devices[device];
  *properties = cudaDeviceProp();
  std::snprintf(properties->name, sizeof(properties->name), "%s",
                is.name.c_str());
  properties->major = is.major;
  properties->minor = is.minor;
  properties->totalGlobalMem = is.memory_bytes;
  properties->multiProcessorCount = 1;
  return cudaSuccess;
}

cudaError_t FakeCuda::SetDevice(int device) {
  if (options_.no_device != cudaSuccess) return options_.no_device;
  if (device < 0 || device >= static_cast<int>(options_.devices.size())) {
    return cudaErrorInvalidDevice;
  }
  const absl::MutexLock lock(&mu_);
  current_[std::this_thread::get_id()] = device;
  return cudaSuccess;
}

cudaError_t FakeCuda::MemGetInfo(size_t* free, size_t* total) {
  const absl::MutexLock lock(&mu_);
  *total = options_.devices[CurrentDevice()].memory_bytes;
  *free = *total - used_[CurrentDevice()];
  return cudaSuccess;
}

cudaError_t FakeCuda::Malloc(void** memory, size_t bytes) {
  const absl::MutexLock lock(&mu_);
  if (ForbiddenInCapture()) return cudaErrorStreamCaptureUnsupported;
  const int device = CurrentDevice();
  const size_t size = RoundUp(bytes, kAlignment);
  char* place = region_ + device_starts_[device];
  const char* const end = place + options_.devices[device].memory_bytes;
  // The first gap that is wide enough.
  for (const auto& [start, allocation] : allocations_) {
    if (allocation.device != device) continue;
    if (place + size <= start) break;
    place = const_cast<char*>(start) + RoundUp(allocation.bytes, kAlignment);
  }
  if (size > static_cast<size_t>(end - place)) {
    last_error_ = cudaErrorMemoryAllocation;
    return last_error_;
  }
  allocations_[place] = {bytes, device};
  used_[device] += size;
  const Opened opened(*this);
  std::memset(place, kPoison, bytes);
  *memory = place;
  return cudaSuccess;
}

cudaError_t FakeCuda::Free(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const absl::MutexLock lock(&mu_);
  if (ForbiddenInCapture()) return cudaErrorStreamCaptureUnsupported;
  const auto found = allocations_.find(static_cast<char*>(memory));
  if (found == allocations_.end()) return cudaErrorInvalidValue;
  const Opened opened(*this);
  // As CUDA does: what uses the memory ends first.
  queues_.SynchronizeAll();
  std::memset(memory, kPoison, found->second.bytes);
  used_[found->second.device] -= RoundUp(found->second.bytes, kAlignment);
  allocations_.erase(found);
  return cudaSuccess;
}

cudaError_t FakeCuda::HostRegister(void* memory, size_t bytes) {
  const absl::MutexLock lock(&mu_);
  if (memory == nullptr || bytes == 0) return cudaErrorInvalidValue;
  if (ForbiddenInCapture()) return cudaErrorStreamCaptureUnsupported;
  const char* const begin = static_cast<char*>(memory);
  for (const auto& [start, size] : pinned_) {
    if (begin < start + size && start < begin + bytes) {
      last_error_ = cudaErrorHostMemoryAlreadyRegistered;
      return last_error_;
    }
  }
  pinned_[begin] = bytes;
  return cudaSuccess;
}

cudaError_t FakeCuda::HostUnregister(void* memory) {
  const absl::MutexLock lock(&mu_);
  return pinned_.erase(static_cast<char*>(memory)) == 1
             ? cudaSuccess
             : cudaErrorHostMemoryNotRegistered;
}

// The copy is done, or at least read, when the call returns.
cudaError_t FakeCuda::CopyPageable(void* to, const void* from, size_t bytes,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
  if (queues_.IsCapturing(stream)) return cudaErrorStreamCaptureUnsupported;
  if (kind == cudaMemcpyHostToDevice) {
    const char* const begin = static_cast<const char*>(from);
    auto staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
    return queues_.Put(stream, [to, staged] {
      std::memcpy(to, staged->data(), staged->size());
    });
  }
  const cudaError_t error =
      queues_.Put(stream, [to, from, bytes] { std::memcpy(to, from, bytes); });
  if (error != cudaSuccess) return error;
  const Opened opened(*this);
  return queues_.SynchronizeStream(stream);
}

cudaError_t FakeCuda::Memcpy(void* to, const void* from, size_t bytes,
                             cudaMemcpyKind kind, cudaStream_t stream) {
  const absl::MutexLock lock(&mu_);
  if (IsElsewhere(stream)) return cudaErrorInvalidResourceHandle;
  const bool to_device = kind != cudaMemcpyDeviceToHost;
  const bool from_device = kind != cudaMemcpyHostToDevice;
  if (bytes == 0) return cudaSuccess;
  if (IsDevice(to, bytes) != to_device ||
      IsDevice(from, bytes) != from_device) {
    return cudaErrorInvalidValue;
  }
  const bool is_pinned = (to_device || IsPinned(to, bytes)) &&
                         (from_device || IsPinned(from, bytes));
  if (!is_pinned) return CopyPageable(to, from, bytes, kind, stream);
  return queues_.Put(stream,
                     [to, from, bytes] { std::memcpy(to, from, bytes); });
}

cudaError_t FakeCuda::Memset(void* memory, int value, size_t bytes,
                             cudaStream_t stream) {
  const absl::MutexLock lock(&mu_);
  if (IsElsewhere(stream)) return cudaErrorInvalidResourceHandle;
  if (!IsDevice(memory, bytes)) return cudaErrorInvalidValue;
  return queues_.Put(
      stream, [memory, value, bytes] { std::memset(memory, value, bytes); });
}

cudaError_t FakeCuda::LaunchKernel(const void* kernel, dim3 blocks,
                                   dim3 threads, void** arguments,
                                   cudaStream_t stream) {
  const absl::MutexLock lock(&mu_);
  const int64_t block = int64_t{threads.x} * threads.y * threads.z;
  if (kernel == nullptr || block < 1 || block > 1024 || blocks.x < 1 ||
      blocks.y < 1 || blocks.y > 65535 || blocks.z < 1 || blocks.z > 65535) {
    last_error_ = cudaErrorInvalidConfiguration;
    return last_error_;
  }
  if (IsElsewhere(stream)) return cudaErrorInvalidResourceHandle;
  ++launches_;
  return queues_.Put(
      stream, [run = options_.run_kernel,
               thread = static_cast<const HostKernel*>(kernel)->Bind(arguments),
               blocks, threads] { run(thread, blocks, threads); });
}

cudaError_t FakeCuda::BeginCapture(cudaStream_t stream) {
  const absl::MutexLock lock(&mu_);
  if (IsElsewhere(stream)) return cudaErrorInvalidResourceHandle;
  const cudaError_t error = queues_.BeginCapture(stream);
  if (error == cudaSuccess) capturing_[std::this_thread::get_id()] = stream;
  return error;
}

cudaError_t FakeCuda::EndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const absl::MutexLock lock(&mu_);
  capturing_.erase(std::this_thread::get_id());
  return queues_.EndCapture(stream, graph);
}

template <typename Call>
cudaError_t FakeCuda::Working(Call call) {
  const absl::MutexLock lock(&mu_);
  for (;;) {
    const int64_t seen = queues_.puts();
    {
      const Opened opened(*this);
      const cudaError_t error = call(&queues_);
      if (error != cudaErrorLaunchTimeout) return error;
    }
    const auto has_more = [this, seen]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return queues_.puts() != seen;
    };
    if (!mu_.AwaitWithTimeout(absl::Condition(&has_more), kPatience)) {
      return cudaErrorLaunchTimeout;
    }
  }
}

cudaError_t FakeCuda::Enqueue(cudaStream_t stream, std::function<void()> work,
                              std::function<bool()> ready) {
  const absl::MutexLock lock(&mu_);
  return queues_.Put(stream, std::move(work), std::move(ready));
}

std::string FakeCuda::Leaks() const {
  const absl::MutexLock lock(&mu_);
  std::string leaks;
  const auto add = [&leaks](size_t count, const char* what) {
    if (count == 0) return;
    absl::StrAppend(&leaks, leaks.empty() ? "" : ", ", count, " ", what);
  };
  add(queues_.num_streams(), "streams");
  add(queues_.num_events(), "events");
  add(queues_.num_graphs(), "graphs");
  add(allocations_.size(), "allocations");
  add(pinned_.size(), "pinned ranges");
  return leaks;
}

size_t FakeCuda::used_bytes(int device) const {
  const absl::MutexLock lock(&mu_);
  return used_[device];
}

int64_t FakeCuda::launches() const {
  const absl::MutexLock lock(&mu_);
  return launches_;
}

CudaFunctions FakeCuda::functions() {
  CudaFunctions functions;
  AddDeviceFunctions(&functions);
  AddMemoryFunctions(&functions);
  AddStreamFunctions(&functions);
  AddEventFunctions(&functions);
  AddGraphFunctions(&functions);
  return functions;
}

void FakeCuda::AddDeviceFunctions(CudaFunctions* functions) {
  functions->DriverGetVersion = [this](int* version) {
    *version = options_.driver_version;
    return cudaSuccess;
  };
  functions->GetDeviceCount = [this](int* count) {
    return GetDeviceCount(count);
  };
  functions->GetDeviceProperties = [this](cudaDeviceProp* properties,
                                          int device) {
    return GetDeviceProperties(properties, device);
  };
  functions->SetDevice = [this](int device) { return SetDevice(device); };
  functions->MemGetInfo = [this](size_t* free, size_t* total) {
    return MemGetInfo(free, total);
  };
  functions->GetErrorString = [](cudaError_t) { return "a fake reason"; };
  functions->GetLastError = [this] {
    const absl::MutexLock lock(&mu_);
    return std::exchange(last_error_, cudaSuccess);
  };
}

void FakeCuda::AddMemoryFunctions(CudaFunctions* functions) {
  functions->Malloc = [this](void** memory, size_t bytes) {
    return Malloc(memory, bytes);
  };
  functions->Free = [this](void* memory) { return Free(memory); };
  functions->HostRegister = [this](void* memory, size_t bytes, unsigned) {
    return HostRegister(memory, bytes);
  };
  functions->HostUnregister = [this](void* memory) {
    return HostUnregister(memory);
  };
  functions->MemcpyAsync = [this](void* to, const void* from, size_t bytes,
                                  cudaMemcpyKind kind, cudaStream_t stream) {
    return Memcpy(to, from, bytes, kind, stream);
  };
  functions->MemsetAsync = [this](void* memory, int value, size_t bytes,
                                  cudaStream_t stream) {
    return Memset(memory, value, bytes, stream);
  };
}

void FakeCuda::AddStreamFunctions(CudaFunctions* functions) {
  functions->StreamCreateWithFlags = [this](cudaStream_t* stream, unsigned) {
    const absl::MutexLock lock(&mu_);
    *stream = queues_.CreateStream(CurrentDevice());
    return cudaSuccess;
  };
  functions->StreamDestroy = [this](cudaStream_t stream) {
    return Working([&](FakeQueues* q) { return q->DestroyStream(stream); });
  };
  functions->StreamSynchronize = [this](cudaStream_t stream) {
    return Working([&](FakeQueues* q) { return q->SynchronizeStream(stream); });
  };
  functions->StreamWaitEvent = [this](cudaStream_t stream, cudaEvent_t event,
                                      unsigned) {
    const absl::MutexLock lock(&mu_);
    if (IsElsewhere(stream)) return cudaErrorInvalidResourceHandle;
    return queues_.Wait(stream, event);
  };
  functions->LaunchKernel = [this](const void* kernel, dim3 blocks,
                                   dim3 threads, void** arguments, size_t,
                                   cudaStream_t stream) {
    return LaunchKernel(kernel, blocks, threads, arguments, stream);
  };
}

void FakeCuda::AddEventFunctions(CudaFunctions* functions) {
  functions->EventCreateWithFlags = [this](cudaEvent_t* event, unsigned flags) {
    const absl::MutexLock lock(&mu_);
    return queues_.CreateEvent(event, flags, CurrentDevice());
  };
  functions->EventDestroy = [this](cudaEvent_t event) {
    return Working([&](FakeQueues* q) { return q->DestroyEvent(event); });
  };
  functions->EventRecord = [this](cudaEvent_t event, cudaStream_t stream) {
    const absl::MutexLock lock(&mu_);
    if (IsElsewhere(stream)) return cudaErrorInvalidResourceHandle;
    return queues_.Record(event, stream);
  };
  functions->EventSynchronize = [this](cudaEvent_t event) {
    return Working([&](FakeQueues* q) { return q->SynchronizeEvent(event); });
  };
  functions->EventElapsedTime = [this](float* ms, cudaEvent_t start,
                                       cudaEvent_t end) {
    const absl::MutexLock lock(&mu_);
    return queues_.ElapsedTime(ms, start, end);
  };
}

void FakeCuda::AddGraphFunctions(CudaFunctions* functions) {
  functions->StreamBeginCapture = [this](cudaStream_t stream,
                                         cudaStreamCaptureMode) {
    return BeginCapture(stream);
  };
  functions->StreamEndCapture = [this](cudaStream_t stream,
                                       cudaGraph_t* graph) {
    return EndCapture(stream, graph);
  };
  functions->GraphInstantiate = [this](cudaGraphExec_t* executable,
                                       cudaGraph_t graph,
                                       unsigned long long) {  // NOLINT
    const absl::MutexLock lock(&mu_);
    return queues_.Instantiate(executable, graph);
  };
  functions->GraphLaunch = [this](cudaGraphExec_t executable,
                                  cudaStream_t stream) {
    const absl::MutexLock lock(&mu_);
    if (IsElsewhere(stream)) return cudaErrorInvalidResourceHandle;
    return queues_.Launch(executable, stream);
  };
  functions->GraphDestroy = [this](cudaGraph_t graph) {
    const absl::MutexLock lock(&mu_);
    return queues_.DestroyGraph(graph);
  };
  functions->GraphExecDestroy = [this](cudaGraphExec_t executable) {
    const absl::MutexLock lock(&mu_);
    return queues_.DestroyExecutable(executable);
  };
}

}  // namespace muster
