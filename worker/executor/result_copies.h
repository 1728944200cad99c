#ifndef WORKER_EXECUTOR_RESULT_COPIES_H_
#define WORKER_EXECUTOR_RESULT_COPIES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/backend/device_streams.h"
#include "worker/executor/pinned_buffer.h"
#include "worker/model/execution_plan.h"

namespace muster {

// Pinned memory of the host for what a plan leaves in device memory: its
// buffers that are live_at_end, and the loss as it is before the penalties.
class ResultCopies {
 public:
  // `device_data` gives the device memory of a buffer. `plan` and `streams`
  // outlive this. Errors: those of DeviceStreams.
  static absl::StatusOr<std::unique_ptr<ResultCopies>> Create(
      const ExecutionPlan* plan,
      absl::FunctionRef<const void*(int buffer)> device_data,
      DeviceStreams* streams);

  ResultCopies(const ResultCopies&) = delete;
  ResultCopies& operator=(const ResultCopies&) = delete;

  // Put copies into kToHost.
  absl::Status FetchForwardLoss();
  absl::Status FetchResults();
  // The bytes that FetchResults copies.
  int64_t results_bytes() const;

  // The loss that has come; zero before.
  double forward_loss() const;
  // REQUIRES: the buffer is live_at_end.
  const void* Result(int buffer) const {
    return host_->data() + begins_[buffer];
  }

 private:
  // From `device` to `begin` of host_.
  struct Copy {
    int64_t begin = 0;
    const void* device = nullptr;
    int64_t size_bytes = 0;
  };

  explicit ResultCopies(DeviceStreams* streams) : streams_(streams) {}

  absl::Status Fetch(const Copy& copy);

  DeviceStreams* const streams_;
  Copy forward_loss_;
  std::vector<Copy> results_;
  // By buffer of the plan; -1 for those that are not live_at_end.
  std::vector<int64_t> begins_;
  std::unique_ptr<PinnedBuffer> host_;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_RESULT_COPIES_H_
