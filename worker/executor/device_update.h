#ifndef WORKER_EXECUTOR_DEVICE_UPDATE_H_
#define WORKER_EXECUTOR_DEVICE_UPDATE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/rpc/device_parameters.h"
#include "worker/backend/device_rule.h"
#include "worker/backend/device_streams.h"
#include "worker/executor/device_timer.h"
#include "worker/executor/pinned_buffer.h"
#include "worker/executor/plan_executor.h"

namespace muster {

// Updates the parameters of one model in a device's memory, where its executor
// computes their gradients: the shard's DeviceParameters. Parameters, gradients
// and each slot lie alike (ParameterPlaces), so that an update of everything is
// one launch.
//
// The executor holds mu() while it uses the device's streams, from the first
// call of a step to the end of its last work. Everything else locks it itself;
// updates may still be in kCompute between two steps, and nothing else.
class DeviceUpdate : public DeviceParameters {
 public:
  // All outlive the update.
  struct Options {
    DeviceStreams* streams = nullptr;
    // In the host's memory, which is pinned.
    const ParameterPlaces* places = nullptr;
    // On the device, with the same offsets.
    float* values = nullptr;
    const float* gradients = nullptr;
    // The executor's; used under mu().
    DeviceTimer* timer = nullptr;
  };

  // Slots are `num_slots` for each parameter. Errors: those of DeviceStreams.
  static absl::StatusOr<std::unique_ptr<DeviceUpdate>> Create(
      std::unique_ptr<DeviceRule> rule, int num_slots, const Options& options);

  // ---- For the executor, after MakeCurrent. REQUIRES: mu() is held. -------

  absl::Mutex* mu() ABSL_LOCK_RETURNED(mu_) { return &mu_; }

  // Puts the updates into kCompute that are due yet. Errors: also those of an
  // update that failed before; FailedPrecondition before Take.
  absl::Status Flush();
  // Put the look at all gradients into kCompute, and what it found into
  // kToHost.
  absl::Status EnqueueCheck();
  absl::Status FetchCheck();
  int64_t check_bytes() const { return counts_->size_bytes(); }

  // ---- Between steps ------------------------------------------------------

  // No gradient of the last step has a NaN or an infinity.
  bool gradients_are_finite() const;
  // Puts the updates that are due into kCompute, while the host has other
  // things to do before the next step. What it fails of is told by that step,
  // and by every WriteBack until the next Take.
  void Start() ABSL_LOCKS_EXCLUDED(mu_);
  // Copies parameters and gradients to the host, and waits for that; once after
  // each step or update. Errors: those of DeviceStreams.
  absl::Status FetchTensors() ABSL_LOCKS_EXCLUDED(mu_);

  // ---- DeviceParameters ----------------------------------------------------
  absl::Status Take(absl::Span<const ResidentTensor> tensors) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void Update(int tensor, int64_t begin, int64_t end,
              const BlockUpdate& update) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status WriteBack(absl::Span<const ResidentTensor> tensors) override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Elements of values, gradients and slots that have the same update due.
  struct Due {
    int64_t begin = 0;
    int64_t end = 0;
    BlockUpdate update;
  };

  DeviceUpdate(std::unique_ptr<DeviceRule> rule, const Options& options)
      : rule_(std::move(rule)), options_(options) {}

  absl::Status Allocate(int num_slots);
  absl::Status CheckTensors(absl::Span<const ResidentTensor> tensors) const;
  absl::Status FetchAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status SendAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status FetchValues() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Apply(const Due& due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ApplyDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t size_bytes() const {
    return static_cast<int64_t>(options_.places->values.size());
  }
  // Where a tensor begins, in elements.
  int64_t BeginOf(size_t tensor) const;
  // A slot of all tensors, as it was fetched or is to be sent.
  float* HostSlot(size_t slot) const;

  // Constant after construction.
  const std::unique_ptr<DeviceRule> rule_;
  const Options options_;
  std::vector<std::unique_ptr<DeviceStreams::Buffer>> slots_;
  std::unique_ptr<DeviceStreams::Buffer> counts_;
  // The host's: the slots one after another, and the counts.
  std::unique_ptr<PinnedBuffer> host_slots_;
  std::unique_ptr<PinnedBuffer> host_counts_;

  absl::Mutex mu_;
  bool has_taken_ ABSL_GUARDED_BY(mu_) = false;
  // The host has the parameters and gradients of the last step.
  bool has_fetched_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Due> due_ ABSL_GUARDED_BY(mu_);
  // The error of an update: what is held is of no use.
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_DEVICE_UPDATE_H_
