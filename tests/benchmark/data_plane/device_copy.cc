#include "tests/benchmark/data_plane/device_copy.h"

#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "worker/backend/backend.h"
#include "worker/backend/device_streams.h"
#include "worker/executor/pinned_buffer.h"

namespace muster {
namespace {

using Stream = DeviceStreams::Stream;

class DeviceCopy : public Workload {
 public:
  static absl::StatusOr<std::unique_ptr<Workload>> Create(
      std::unique_ptr<Backend> backend, int64_t bytes, CopyTo to) {
    auto copy = absl::WrapUnique(new DeviceCopy(std::move(backend), bytes, to));
    RETURN_IF_ERROR(copy->Allocate());
    return copy;
  }

  absl::Status Step(int) override {
    DeviceStreams& streams = *backend_->streams();
    RETURN_IF_ERROR(streams.MakeCurrent());
    RETURN_IF_ERROR(Copy(to_));
    RETURN_IF_ERROR(streams.Record(done_.get(), StreamOf(to_)));
    return streams.Await(*done_);
  }

  // The values on the device come back as they were.
  absl::Status Check() override {
    DeviceStreams& streams = *backend_->streams();
    RETURN_IF_ERROR(streams.MakeCurrent());
    std::memset(host_->data(), 0, bytes_);
    RETURN_IF_ERROR(Copy(CopyTo::kHost));
    RETURN_IF_ERROR(streams.Synchronize());
    for (int64_t i = 0; i < bytes_; ++i) {
      if (host_->data()[i] != kByte) {
        return absl::InternalError("the device's copy differs");
      }
    }
    return absl::OkStatus();
  }

  int64_t bytes_per_step() const override { return bytes_; }

 private:
  static constexpr char kByte = 7;

  DeviceCopy(std::unique_ptr<Backend> backend, int64_t bytes, CopyTo to)
      : backend_(std::move(backend)), bytes_(bytes), to_(to) {}

  static Stream StreamOf(CopyTo to) {
    return to == CopyTo::kDevice ? Stream::kToDevice : Stream::kToHost;
  }

  absl::Status Copy(CopyTo to) {
    DeviceStreams& streams = *backend_->streams();
    return to == CopyTo::kDevice
               ? streams.CopyToDevice(device_->data(), host_->data(), bytes_)
               : streams.CopyToHost(host_->data(), device_->data(), bytes_);
  }

  absl::Status Allocate() {
    DeviceStreams& streams = *backend_->streams();
    RETURN_IF_ERROR(streams.MakeCurrent());
    ASSIGN_OR_RETURN(device_, streams.Allocate(bytes_, "what is copied"));
    ASSIGN_OR_RETURN(host_, PinnedBuffer::Create(&streams, bytes_));
    ASSIGN_OR_RETURN(done_, streams.CreateEvent());
    std::memset(host_->data(), kByte, bytes_);
    RETURN_IF_ERROR(Copy(CopyTo::kDevice));
    return streams.Synchronize();
  }

  const std::unique_ptr<Backend> backend_;
  const int64_t bytes_;
  const CopyTo to_;
  std::unique_ptr<DeviceStreams::Buffer> device_;
  std::unique_ptr<PinnedBuffer> host_;
  std::unique_ptr<DeviceStreams::Event> done_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeDeviceCopy(
    const WorkloadOptions& options, CopyTo to) {
  ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend,
                   CreateBackend("cuda", BackendOptions()));
  return DeviceCopy::Create(std::move(backend), options.bytes, to);
}

}  // namespace muster
