#ifndef WORKER_MODEL_STAGING_AREA_H_
#define WORKER_MODEL_STAGING_AREA_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/backend/device_streams.h"
#include "worker/input/batch.h"
#include "worker/model/pinned_buffer.h"

namespace muster {

// What a step takes besides the parameters, on its way to a device: the batch,
// and the seeds of what is random. It is written to pinned memory of the host
// and goes by one copy to memory of the device that is laid out alike.
class StagingArea {
 public:
  struct Size {
    // The most of a batch.
    int64_t rows = 0;
    int64_t example_elements = 0;
    int64_t seeds = 0;
  };

  // `streams` outlives the area. Errors: those of DeviceStreams.
  static absl::StatusOr<std::unique_ptr<StagingArea>> Create(
      DeviceStreams* streams, const Size& size);

  StagingArea(const StagingArea&) = delete;
  StagingArea& operator=(const StagingArea&) = delete;

  // Rows that the batch does not have keep what was there before. REQUIRES, as
  // for what is written to seeds(): what was sent before has arrived.
  void SetBatch(const Batch& batch);
  absl::Span<uint64_t> seeds();

  int64_t size_bytes() const { return size_bytes_; }

  // Puts the copy into kToDevice.
  absl::Status Send();

  // Memory of the device: float32 [rows, example_elements], int32 [rows], and
  // the seeds.
  char* device_examples() const { return device_->data(); }
  char* device_labels() const { return device_->data() + labels_begin_; }
  const uint64_t* device_seeds() const {
    return reinterpret_cast<const uint64_t*>(device_->data() + seeds_begin_);
  }

 private:
  StagingArea(DeviceStreams* streams, const Size& size);

  DeviceStreams* const streams_;
  const Size size_;
  // Where they begin in both memories; the examples at 0.
  int64_t labels_begin_ = 0;
  int64_t seeds_begin_ = 0;
  int64_t size_bytes_ = 0;
  std::unique_ptr<PinnedBuffer> host_;
  std::unique_ptr<DeviceStreams::Buffer> device_;
};

}  // namespace muster

#endif  // WORKER_MODEL_STAGING_AREA_H_
