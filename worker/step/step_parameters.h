#ifndef WORKER_STEP_STEP_PARAMETERS_H_
#define WORKER_STEP_STEP_PARAMETERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/rpc/device_parameters.h"
#include "common/tensor/aligned_buffer.h"
#include "proto/parameter_service.pb.h"
#include "worker/client/client_model.h"
#include "worker/client/parameter_client.h"
#include "worker/client/pull.h"
#include "worker/executor/parameter_gate.h"
#include "worker/tower/computed_step.h"

namespace muster {

// The values that steps are computed from, in the memory that all towers read.
// They are pulled, or come with the answers to the push before. A step begins
// while a pull is on its way, and waits for each parameter just before it first
// reads it. Step after step: Begin, BeforeUse on the towers' threads, Finish;
// all else is for one thread, and not meanwhile.
//
// `ahead`: what a push brings comes while the next step is computed, to memory
// of its own, and is copied when it is taken.
//
// `in_place`: the towers read the values where the shards keep them
// (ParametersInPlace), if that can be done; it is found out at the first step,
// and again after Drop. Only versions are pulled and brought then.
class StepParameters : public ParameterGate {
 public:
  struct Options {
    // Both outlive this.
    ParameterClient* client = nullptr;
    const Clock* clock = nullptr;
    // By tensor, what the towers read.
    std::vector<absl::Span<float>> values;
    bool ahead = false;
    bool in_place = false;
    // Has the values, and updates them, from the first step on, and again after
    // Drop; the towers read them there. As with in_place, only versions are
    // pulled and brought. Null: nobody.
    DeviceParameters* holder = nullptr;
    // With in_place: makes the towers read each parameter from there; from
    // `values` again if it is empty.
    std::function<void(absl::Span<const float* const>)> read_from;
    // With in_place: gets a line if it cannot be done, and why.
    std::function<void(const std::string&)> say;
  };

  explicit StepParameters(Options options);

  // Where a push is to bring values; empty if they are read in place.
  absl::Span<const MutableTensorView> into() const {
    return in_place_.has_value() ? absl::Span<const MutableTensorView>()
                                 : absl::MakeConstSpan(into_);
  }
  // It has brought these, or, null, none.
  void Bring(std::shared_ptr<const PulledVersions> versions);

  // A step begins with the newest values: it takes those that were brought, or
  // else asks for them. Errors: InvalidArgument.
  absl::Status Begin(const StepToken& token);
  // A step begins with those that were brought, or else with the same as the
  // step before.
  void BeginWithThoseAtHand();

  // Thread-safe. Errors: those of the pull.
  absl::Status BeforeUse(int parameter) override;

  // Waits for those that nobody has used. Errors: those of the pull.
  absl::Status Finish();

  // What was asked for, or brought, is of no use.
  void Drop();

  // Of all values that have come: what they took on the way, and would have
  // taken as float32.
  int64_t received_bytes() const { return received_bytes_; }
  int64_t float32_bytes() const { return float32_bytes_; }

  // ---- Of the step that has begun -----------------------------------------

  // What it failed of, if that was the pull.
  absl::Status failure() const;
  // Of the values; after Finish, until the next Begin.
  const std::shared_ptr<const PulledVersions>& versions() const {
    return versions_;
  }
  // For StepTimes: the pull (else twice when the step has begun), and who has
  // waited for it.
  absl::Time pull_begun() const { return pull_begun_; }
  absl::Time pulled() const { return pulled_; }
  std::vector<ParameterWait> waits() const;

 private:
  // Whether the towers read in place in this epoch. Errors: those that may be
  // others with the next attempt.
  absl::Status ChoosePlace();
  absl::Status LetHold();
  void AddWait(int parameter, absl::Time begun)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountBytes(const PulledVersions& versions);

  // Constant after construction.
  const Options options_;
  // What a push brings; of memory_ if `ahead`.
  AlignedBuffer memory_;
  std::vector<absl::Span<float>> arrivals_;
  std::vector<MutableTensorView> into_;
  // What is pulled.
  std::vector<MutableTensorView> views_;

  // Of the thread that begins steps. What the towers read in place; none if
  // they do not; empty with a holder.
  std::optional<ParametersInPlace> in_place_;
  bool has_chosen_ = false;
  std::string said_;
  // Null if the step began without one.
  std::unique_ptr<Pull> pull_;
  // Of the values in arrivals_ that no step has taken.
  std::shared_ptr<const PulledVersions> brought_;
  absl::Time pull_begun_;
  absl::Time pulled_;
  std::shared_ptr<const PulledVersions> versions_;
  int64_t received_bytes_ = 0;
  int64_t float32_bytes_ = 0;

  mutable absl::Mutex mu_;
  // By tensor: its values are where the towers read them.
  std::vector<bool> is_there_ ABSL_GUARDED_BY(mu_);
  std::vector<ParameterWait> waits_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_STEP_STEP_PARAMETERS_H_
