#include "worker/executor/result_copies.h"

#include <cstring>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "common/tensor/aligned_places.h"

namespace muster {

absl::StatusOr<std::unique_ptr<ResultCopies>> ResultCopies::Create(
    const ExecutionPlan* plan,
    absl::FunctionRef<const void*(int buffer)> device_data,
    DeviceStreams* streams) {
  auto copies = absl::WrapUnique(new ResultCopies(streams));
  AlignedPlaces places;
  copies->forward_loss_ = {places.Add(sizeof(double)),
                           device_data(plan->loss_buffer), sizeof(double)};
  copies->begins_.resize(plan->buffers.size(), -1);
  for (size_t i = 0; i < plan->buffers.size(); ++i) {
    const PlanBuffer& buffer = plan->buffers[i];
    if (!buffer.live_at_end) continue;
    copies->begins_[i] = places.Add(buffer.size_bytes);
    copies->results_.push_back({copies->begins_[i],
                                device_data(static_cast<int>(i)),
                                buffer.size_bytes});
  }
  ASSIGN_OR_RETURN(copies->host_,
                   PinnedBuffer::Create(streams, places.size_bytes()));
  return copies;
}

absl::Status ResultCopies::Fetch(const Copy& copy) {
  return streams_->CopyToHost(host_->data() + copy.begin, copy.device,
                              copy.size_bytes);
}

absl::Status ResultCopies::FetchForwardLoss() { return Fetch(forward_loss_); }

absl::Status ResultCopies::FetchResults() {
  for (const Copy& copy : results_) RETURN_IF_ERROR(Fetch(copy));
  return absl::OkStatus();
}

int64_t ResultCopies::results_bytes() const {
  int64_t bytes = 0;
  for (const Copy& copy : results_) bytes += copy.size_bytes;
  return bytes;
}

double ResultCopies::forward_loss() const {
  double loss = 0;
  std::memcpy(&loss, host_->data() + forward_loss_.begin, sizeof(loss));
  return loss;
}

}  // namespace muster
