#include "worker/executor/staging_area.h"

#include <algorithm>
#include <cstring>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "common/tensor/aligned_places.h"

namespace muster {

StagingArea::StagingArea(DeviceStreams* streams, DeviceTimer* timer,
                         const Size& size)
    : streams_(streams), timer_(timer), size_(size) {
  AlignedPlaces places;
  places.Add(size.rows * size.example_elements *
             static_cast<int64_t>(sizeof(float)));
  labels_begin_ = places.Add(size.labels_bytes);
  weights_begin_ = places.Add(size.weights_bytes);
  seeds_begin_ =
      places.Add(size.seeds * static_cast<int64_t>(sizeof(uint64_t)));
  size_bytes_ = places.size_bytes();
}

absl::StatusOr<std::unique_ptr<StagingArea>> StagingArea::Create(
    DeviceStreams* streams, DeviceTimer* timer, const Size& size) {
  auto area = absl::WrapUnique(new StagingArea(streams, timer, size));
  ASSIGN_OR_RETURN(area->host_,
                   PinnedBuffer::Create(streams, area->size_bytes_));
  ASSIGN_OR_RETURN(area->device_,
                   streams->Allocate(area->size_bytes_, "a batch"));
  ASSIGN_OR_RETURN(area->sent_, streams->CreateEvent());
  return area;
}

StagingArea::~StagingArea() {
  if (!was_sent_ || !streams_->MakeCurrent().ok()) return;
  streams_->Await(*sent_).IgnoreError();
}

absl::Status StagingArea::Send(const SeededBatch& batch,
                               absl::Span<const uint64_t> seeds) {
  Forget();
  if (was_sent_) RETURN_IF_ERROR(streams_->Await(*sent_));
  Write(*batch.batch, seeds);
  constexpr auto kToDevice = DeviceStreams::Stream::kToDevice;
  RETURN_IF_ERROR(
      timer_->Time({kToDevice, "batch", /*tensor=*/-1, size_bytes_}, [this] {
        return streams_->CopyToDevice(device_->data(), host_->data(),
                                      size_bytes_);
      }));
  RETURN_IF_ERROR(streams_->Record(sent_.get(), kToDevice));
  was_sent_ = true;
  batch_id_ = batch.batch->id;
  seed_ = batch.seed;
  return absl::OkStatus();
}

void StagingArea::Write(const Batch& batch, absl::Span<const uint64_t> seeds) {
  char* const to = host_->data();
  std::copy_n(batch.input().begin(), batch.rows * size_.example_elements,
              reinterpret_cast<float*>(to));
  std::memcpy(to + labels_begin_, batch.label_tensor().storage.data(),
              size_.labels_bytes / size_.rows * batch.rows);
  if (size_.weights_bytes > 0) {
    std::copy_n(batch.weights().begin(), batch.rows,
                reinterpret_cast<float*>(to + weights_begin_));
  }
  std::copy(seeds.begin(), seeds.end(),
            reinterpret_cast<uint64_t*>(to + seeds_begin_));
}

}  // namespace muster
