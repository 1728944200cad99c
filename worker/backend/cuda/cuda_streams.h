#ifndef WORKER_BACKEND_CUDA_CUDA_STREAMS_H_
#define WORKER_BACKEND_CUDA_CUDA_STREAMS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/backend/cuda/gpu_functions.h"
#include "worker/backend/device_streams.h"

namespace muster {

// The streams and memory of one CUDA device.
class CudaStreams : public DeviceStreams {
 public:
  struct Options {
    int ordinal = 0;
    // For messages: "cuda:1".
    std::string name;
    // Allocate's limit; 0: all that is free.
    int64_t memory_limit_bytes = 0;
  };

  // `gpu` outlives this. Errors: Unavailable if there is no such device or
  // driver; Internal with CUDA's reason.
  static absl::StatusOr<std::unique_ptr<CudaStreams>> Create(
      const GpuFunctions* gpu, const Options& options);
  ~CudaStreams() override;

  CudaStreams(const CudaStreams&) = delete;
  CudaStreams& operator=(const CudaStreams&) = delete;

  absl::Status MakeCurrent() override;
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(
      int64_t bytes, absl::string_view what) override;
  absl::StatusOr<std::unique_ptr<Pin>> PinHost(void* memory,
                                               int64_t bytes) override;
  std::string unpinned() const override { return unpinned_; }
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent() override;
  absl::StatusOr<std::unique_ptr<Event>> CreateTimedEvent() override;
  absl::Status CopyToDevice(void* device, const void* host,
                            int64_t bytes) override;
  absl::Status CopyToHost(void* host, const void* device,
                          int64_t bytes) override;
  absl::Status Record(Event* event, Stream stream) override;
  absl::Status Wait(Stream stream, const Event& event) override;
  absl::Status Await(const Event& event) override;
  absl::StatusOr<absl::Duration> ElapsedTime(const Event& from,
                                             const Event& to) override;
  absl::Status BeginCapture() override;
  absl::StatusOr<std::unique_ptr<Graph>> EndCapture() override;
  absl::Status Launch(const Graph& graph) override;
  absl::Status Synchronize() override;

  cudaStream_t compute() const { return Of(Stream::kCompute); }
  cudaStream_t to_host() const { return Of(Stream::kToHost); }
  // The bytes that Allocate has given out at this moment.
  int64_t used_bytes() const { return used_bytes_; }

 private:
  CudaStreams(const GpuFunctions* gpu, const Options& options)
      : gpu_(*gpu), options_(options) {}

  cudaStream_t Of(Stream stream) const {
    return streams_[static_cast<size_t>(stream)];
  }
  template <typename Describe>
  absl::Status Check(cudaError_t error, Describe describe) const;
  absl::StatusOr<std::unique_ptr<Event>> CreateEventWith(unsigned flags);
  absl::Status CheckLimit(int64_t bytes, absl::string_view what) const;
  absl::Status OutOfMemory(int64_t bytes, absl::string_view what) const;

  const GpuFunctions& gpu_;
  const Options options_;
  std::array<cudaStream_t, 3> streams_ = {};
  int64_t used_bytes_ = 0;
  std::string unpinned_;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CUDA_STREAMS_H_
