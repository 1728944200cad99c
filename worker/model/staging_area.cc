#include "worker/model/staging_area.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "common/tensor/aligned_places.h"

namespace muster {

StagingArea::StagingArea(DeviceStreams* streams, const Size& size)
    : streams_(streams), size_(size) {
  AlignedPlaces places;
  places.Add(size.rows * size.example_elements *
             static_cast<int64_t>(sizeof(float)));
  labels_begin_ = places.Add(size.rows * static_cast<int64_t>(sizeof(int32_t)));
  seeds_begin_ =
      places.Add(size.seeds * static_cast<int64_t>(sizeof(uint64_t)));
  size_bytes_ = places.size_bytes();
}

absl::StatusOr<std::unique_ptr<StagingArea>> StagingArea::Create(
    DeviceStreams* streams, const Size& size) {
  auto area = absl::WrapUnique(new StagingArea(streams, size));
  ASSIGN_OR_RETURN(area->host_,
                   PinnedBuffer::Create(streams, area->size_bytes_));
  ASSIGN_OR_RETURN(area->device_,
                   streams->Allocate(area->size_bytes_, "a batch"));
  return area;
}

void StagingArea::SetBatch(const Batch& batch) {
  std::copy_n(batch.examples.as<float>(), batch.rows * size_.example_elements,
              reinterpret_cast<float*>(host_->data()));
  std::copy_n(batch.labels.begin(), batch.rows,
              reinterpret_cast<int32_t*>(host_->data() + labels_begin_));
}

absl::Span<uint64_t> StagingArea::seeds() {
  return {reinterpret_cast<uint64_t*>(host_->data() + seeds_begin_),
          static_cast<size_t>(size_.seeds)};
}

absl::Status StagingArea::Send() {
  return streams_->CopyToDevice(device_->data(), host_->data(), size_bytes_);
}

}  // namespace muster
