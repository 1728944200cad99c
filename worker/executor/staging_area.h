#ifndef WORKER_EXECUTOR_STAGING_AREA_H_
#define WORKER_EXECUTOR_STAGING_AREA_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/backend/device_streams.h"
#include "worker/executor/device_timer.h"
#include "worker/executor/pinned_buffer.h"
#include "worker/input/batch.h"

namespace muster {

// A step's input besides the parameters, on its way to a device: the batch, and
// the seeds of what is random. It is written to pinned memory of the host and
// goes by one copy to memory of the device that is laid out alike.
class StagingArea {
 public:
  struct Size {
    // The most of a batch.
    int64_t rows = 0;
    int64_t example_elements = 0;
    int64_t labels_bytes = 0;
    int64_t weights_bytes = 0;
    int64_t seeds = 0;
  };

  // `streams` and `timer`, which times the copies, outlive the area. Errors:
  // those of DeviceStreams.
  static absl::StatusOr<std::unique_ptr<StagingArea>> Create(
      DeviceStreams* streams, DeviceTimer* timer, const Size& size);

  StagingArea(const StagingArea&) = delete;
  StagingArea& operator=(const StagingArea&) = delete;
  // Waits for a copy that is on its way.
  ~StagingArea();

  // Puts the copy of a batch and its seeds into kToDevice; waits until the last
  // one has arrived. Rows that the batch does not have keep what was there
  // before. REQUIRES: nothing that reads the device's memory is left in a
  // stream; Size::seeds of them.
  absl::Status Send(const SeededBatch& batch, absl::Span<const uint64_t> seeds);
  // Whether the last Send was of this batch, with the same id and seed.
  bool Has(const SeededBatch& batch) const {
    return batch_id_ != 0 && batch_id_ == batch.batch->id &&
           seed_ == batch.seed;
  }
  // Has nothing any more, as before the first Send.
  void Forget() { batch_id_ = 0; }

  // The last Send; of no meaning before.
  const DeviceStreams::Event& sent() const { return *sent_; }

  // Memory of the device: float32 [rows, example_elements], the labels, the
  // weights of rows, and the seeds.
  char* device_examples() const { return device_->data(); }
  char* device_labels() const { return device_->data() + labels_begin_; }
  char* device_weights() const { return device_->data() + weights_begin_; }
  const uint64_t* device_seeds() const {
    return reinterpret_cast<const uint64_t*>(device_->data() + seeds_begin_);
  }

 private:
  StagingArea(DeviceStreams* streams, DeviceTimer* timer, const Size& size);

  void Write(const Batch& batch, absl::Span<const uint64_t> seeds);

  DeviceStreams* const streams_;
  DeviceTimer* const timer_;
  const Size size_;
  // Where they begin in both memories; the examples at 0.
  int64_t labels_begin_ = 0;
  int64_t weights_begin_ = 0;
  int64_t seeds_begin_ = 0;
  int64_t size_bytes_ = 0;
  std::unique_ptr<PinnedBuffer> host_;
  std::unique_ptr<DeviceStreams::Buffer> device_;
  std::unique_ptr<DeviceStreams::Event> sent_;

  bool was_sent_ = false;
  // Batch::id; 0: of nothing.
  int64_t batch_id_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_STAGING_AREA_H_
