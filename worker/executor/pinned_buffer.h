#ifndef WORKER_EXECUTOR_PINNED_BUFFER_H_
#define WORKER_EXECUTOR_PINNED_BUFFER_H_

#include <cstdint>
#include <memory>

#include "absl/memory/memory.h"
#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/tensor/aligned_buffer.h"
#include "worker/backend/device_streams.h"

namespace muster {

// Owned memory of the host, zeroed at first, that a device copies from and to
// without a stop.
class PinnedBuffer {
 public:
  // `streams` outlives the buffer. Errors: those of DeviceStreams::PinHost.
  static absl::StatusOr<std::unique_ptr<PinnedBuffer>> Create(
      DeviceStreams* streams, int64_t size_bytes) {
    auto buffer = absl::WrapUnique(new PinnedBuffer());
    buffer->memory_ = AlignedBuffer::OfPages(static_cast<size_t>(size_bytes));
    ASSIGN_OR_RETURN(buffer->pin_,
                     streams->PinHost(buffer->memory_.data(), size_bytes));
    return buffer;
  }

  char* data() { return memory_.data(); }
  const char* data() const { return memory_.data(); }

 private:
  PinnedBuffer() = default;

  AlignedBuffer memory_;
  // After the memory, so that it goes first.
  std::unique_ptr<DeviceStreams::Pin> pin_;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_PINNED_BUFFER_H_
