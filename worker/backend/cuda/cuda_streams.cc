#include "worker/backend/cuda/cuda_streams.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/gpu_status.h"

namespace muster {
namespace {

constexpr unsigned kNoFlags = 0;

class CudaBuffer : public DeviceStreams::Buffer {
 public:
  // `*used` is reduced when the buffer goes.
  CudaBuffer(const GpuFunctions& gpu, int ordinal, void* data, int64_t bytes,
             int64_t* used)
      : gpu_(gpu),
        ordinal_(ordinal),
        data_(static_cast<char*>(data)),
        bytes_(bytes),
        used_(used) {}
  // cudaFree waits for the work that uses the memory.
  ~CudaBuffer() override {
    gpu_.cuda.SetDevice(ordinal_);
    gpu_.cuda.Free(data_);
    *used_ -= bytes_;
  }

  char* data() const override { return data_; }
  int64_t size_bytes() const override { return bytes_; }

 private:
  const GpuFunctions& gpu_;
  const int ordinal_;
  char* const data_;
  const int64_t bytes_;
  int64_t* const used_;
};

class CudaPin : public DeviceStreams::Pin {
 public:
  // Null: nothing to undo.
  CudaPin(const GpuFunctions& gpu, void* memory) : gpu_(gpu), memory_(memory) {}
  ~CudaPin() override {
    if (memory_ != nullptr) gpu_.cuda.HostUnregister(memory_);
  }

 private:
  const GpuFunctions& gpu_;
  void* const memory_;
};

class CudaEvent : public DeviceStreams::Event {
 public:
  CudaEvent(const GpuFunctions& gpu, cudaEvent_t event)
      : gpu_(gpu), event_(event) {}
  ~CudaEvent() override { gpu_.cuda.EventDestroy(event_); }

  cudaEvent_t get() const { return event_; }

 private:
  const GpuFunctions& gpu_;
  const cudaEvent_t event_;
};

class CudaGraph : public DeviceStreams::Graph {
 public:
  CudaGraph(const GpuFunctions& gpu, cudaGraphExec_t graph)
      : gpu_(gpu), graph_(graph) {}
  ~CudaGraph() override { gpu_.cuda.GraphExecDestroy(graph_); }

  cudaGraphExec_t get() const { return graph_; }

 private:
  const GpuFunctions& gpu_;
  const cudaGraphExec_t graph_;
};

// Whether cudaHostRegister says of the memory, or the system, that it cannot be
// pinned: too much is locked, or the kernel or the kind of memory forbids it.
// All else is of the device, and its next call would fail, too.
bool CannotBePinned(cudaError_t error) {
  return error == cudaErrorInvalidValue || error == cudaErrorMemoryAllocation ||
         error == cudaErrorNotPermitted || error == cudaErrorNotSupported ||
         error == cudaErrorOperatingSystem;
}

cudaEvent_t EventOf(const DeviceStreams::Event& event) {
  return static_cast<const CudaEvent&>(event).get();
}

}  // namespace

template <typename Describe>
absl::Status CudaStreams::Check(cudaError_t error, Describe describe) const {
  return CheckCuda(gpu_, error, [&] {
    return absl::StrCat(options_.name, ": ", describe());
  });
}

absl::StatusOr<std::unique_ptr<CudaStreams>> CudaStreams::Create(
    const GpuFunctions* gpu, const Options& options) {
  auto streams = absl::WrapUnique(new CudaStreams(gpu, options));
  RETURN_IF_ERROR(streams->MakeCurrent());
  for (cudaStream_t& stream : streams->streams_) {
    RETURN_IF_ERROR(streams->Check(
        gpu->cuda.StreamCreateWithFlags(&stream, cudaStreamNonBlocking),
        [] { return "create a stream"; }));
  }
  return streams;
}

CudaStreams::~CudaStreams() {
  gpu_.cuda.SetDevice(options_.ordinal);
  for (const cudaStream_t stream : streams_) {
    if (stream != nullptr) gpu_.cuda.StreamDestroy(stream);
  }
}

absl::Status CudaStreams::MakeCurrent() {
  return Check(gpu_.cuda.SetDevice(options_.ordinal),
               [] { return "use the device"; });
}

absl::Status CudaStreams::CheckLimit(int64_t bytes,
                                     absl::string_view what) const {
  const int64_t limit = options_.memory_limit_bytes;
  if (limit == 0 || bytes <= limit - used_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      options_.name, ": allocate ", what, ": asked for ", bytes,
      " bytes; used are ", used_bytes_, " of the ", limit,
      " that --gpu_memory_fraction or --gpu_memory_limit_mb allows; raise it, "
      "or take a smaller batch"));
}

absl::Status CudaStreams::OutOfMemory(int64_t bytes,
                                      absl::string_view what) const {
  size_t free = 0;
  size_t total = 0;
  const std::string device =
      gpu_.cuda.MemGetInfo(&free, &total) == cudaSuccess
          ? absl::StrCat(free, " of ", total, " are free on the device")
          : "what is free is not known";
  return absl::ResourceExhaustedError(absl::StrCat(
      options_.name, ": allocate ", what, ": out of memory: asked for ", bytes,
      " bytes; used are ", used_bytes_, ", ", device,
      "; take a smaller batch, or another device"));
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Buffer>> CudaStreams::Allocate(
    int64_t bytes, absl::string_view what) {
  RETURN_IF_ERROR(CheckLimit(bytes, what));
  void* data = nullptr;
  if (bytes > 0) {
    const cudaError_t error = gpu_.cuda.Malloc(&data, bytes);
    if (error == cudaErrorMemoryAllocation) {
      gpu_.cuda.GetLastError();
      return OutOfMemory(bytes, what);
    }
    RETURN_IF_ERROR(Check(error, [&] {
      return absl::StrCat("allocate ", bytes, " bytes for ", what);
    }));
  }
  used_bytes_ += bytes;
  auto buffer = std::make_unique<CudaBuffer>(gpu_, options_.ordinal, data,
                                             bytes, &used_bytes_);
  if (bytes > 0) {
    RETURN_IF_ERROR(
        Check(gpu_.cuda.MemsetAsync(data, 0, bytes, compute()),
              [&] { return absl::StrCat("clear ", bytes, " bytes"); }));
    // The other streams may use it at once.
    RETURN_IF_ERROR(Check(gpu_.cuda.StreamSynchronize(compute()),
                          [&] { return absl::StrCat("clear ", what); }));
  }
  return buffer;
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Pin>> CudaStreams::PinHost(
    void* memory, int64_t bytes) {
  if (bytes == 0) return std::make_unique<CudaPin>(gpu_, nullptr);
  const cudaError_t error =
      gpu_.cuda.HostRegister(memory, bytes, cudaHostRegisterPortable);
  if (error == cudaErrorHostMemoryAlreadyRegistered) {
    gpu_.cuda.GetLastError();
    return std::make_unique<CudaPin>(gpu_, nullptr);
  }
  const absl::Status pinned = Check(error, [&] {
    return absl::StrCat("pin ", bytes, " bytes of host memory");
  });
  if (CannotBePinned(error)) {
    gpu_.cuda.GetLastError();
    unpinned_ = std::string(pinned.message());
    return std::make_unique<CudaPin>(gpu_, nullptr);
  }
  RETURN_IF_ERROR(pinned);
  return std::make_unique<CudaPin>(gpu_, memory);
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Event>>
CudaStreams::CreateEventWith(unsigned flags) {
  cudaEvent_t event = nullptr;
  RETURN_IF_ERROR(Check(gpu_.cuda.EventCreateWithFlags(&event, flags),
                        [] { return "create an event"; }));
  return std::make_unique<CudaEvent>(gpu_, event);
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Event>>
CudaStreams::CreateEvent() {
  return CreateEventWith(cudaEventDisableTiming);
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Event>>
CudaStreams::CreateTimedEvent() {
  return CreateEventWith(cudaEventDefault);
}

absl::Status CudaStreams::CopyToDevice(void* device, const void* host,
                                       int64_t bytes) {
  return Check(
      gpu_.cuda.MemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice,
                            Of(Stream::kToDevice)),
      [&] { return absl::StrCat("copy ", bytes, " bytes to it"); });
}

absl::Status CudaStreams::CopyToHost(void* host, const void* device,
                                     int64_t bytes) {
  return Check(
      gpu_.cuda.MemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost,
                            Of(Stream::kToHost)),
      [&] { return absl::StrCat("copy ", bytes, " bytes from it"); });
}

absl::Status CudaStreams::Record(Event* event, Stream stream) {
  return Check(gpu_.cuda.EventRecord(EventOf(*event), Of(stream)),
               [] { return "record an event"; });
}

absl::Status CudaStreams::Wait(Stream stream, const Event& event) {
  return Check(gpu_.cuda.StreamWaitEvent(Of(stream), EventOf(event), kNoFlags),
               [] { return "let a stream wait for an event"; });
}

absl::Status CudaStreams::Await(const Event& event) {
  return Check(gpu_.cuda.EventSynchronize(EventOf(event)),
               [] { return "wait for the device"; });
}

absl::StatusOr<absl::Duration> CudaStreams::ElapsedTime(const Event& from,
                                                        const Event& to) {
  float ms = 0;
  RETURN_IF_ERROR(
      Check(gpu_.cuda.EventElapsedTime(&ms, EventOf(from), EventOf(to)),
            [] { return "read the time between two events"; }));
  return absl::Milliseconds(ms);
}

absl::Status CudaStreams::BeginCapture() {
  return Check(
      gpu_.cuda.StreamBeginCapture(compute(), cudaStreamCaptureModeThreadLocal),
      [] { return "begin to capture a graph"; });
}

absl::StatusOr<std::unique_ptr<DeviceStreams::Graph>>
CudaStreams::EndCapture() {
  cudaGraph_t graph = nullptr;
  RETURN_IF_ERROR(Check(gpu_.cuda.StreamEndCapture(compute(), &graph),
                        [] { return "end the capture of a graph"; }));
  cudaGraphExec_t executable = nullptr;
  const absl::Status made =
      Check(gpu_.cuda.GraphInstantiate(&executable, graph, kNoFlags),
            [] { return "make a graph ready"; });
  gpu_.cuda.GraphDestroy(graph);
  RETURN_IF_ERROR(made);
  return std::make_unique<CudaGraph>(gpu_, executable);
}

absl::Status CudaStreams::Launch(const Graph& graph) {
  return Check(gpu_.cuda.GraphLaunch(static_cast<const CudaGraph&>(graph).get(),
                                     compute()),
               [] { return "launch a graph"; });
}

absl::Status CudaStreams::Synchronize() {
  for (const cudaStream_t stream : streams_) {
    RETURN_IF_ERROR(Check(gpu_.cuda.StreamSynchronize(stream),
                          [] { return "wait for the device"; }));
  }
  return absl::OkStatus();
}

}  // namespace muster
