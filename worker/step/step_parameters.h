#ifndef WORKER_STEP_STEP_PARAMETERS_H_
#define WORKER_STEP_STEP_PARAMETERS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
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
// reads it. Step after step: Begin, BeforeUse on the towers' threads,
// OnComputed; all else is for one thread, and not meanwhile.
class StepParameters : public ParameterGate {
 public:
  struct Options {
    // Both outlive this.
    ParameterClient* client = nullptr;
    const Clock* clock = nullptr;
    // The memory that the towers read, by tensor.
    std::vector<absl::Span<float>> values;
    // By tensor: no push brings new values of it, it is only pulled. Empty: all
    // are brought.
    std::vector<bool> frozen;
    // Values that a push brings come while the next step is computed: to memory
    // of their own, and are copied when they are taken.
    bool ahead = false;
  };

  explicit StepParameters(Options options);

  // Where a push is to bring values; empty if they are read in place.
  absl::Span<const MutableTensorView> into() const {
    return is_in_place() ? absl::Span<const MutableTensorView>()
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
  // As StepExchange::OnComputed.
  absl::Status OnComputed(const absl::Status& computed, StepTimes* times);

  // The versions of the values; after Finish, until the next Begin.
  const std::shared_ptr<const PulledVersions>& versions() const {
    return versions_;
  }

  // Forgets what was asked for, or brought.
  virtual void Drop();

  // The bytes of all values that have come: on the way, those of them that came
  // from other processes, and as float32.
  int64_t received_bytes() const { return received_bytes_; }
  int64_t others_bytes() const { return others_bytes_; }
  int64_t float32_bytes() const { return float32_bytes_; }

 protected:
  ParameterClient* client() { return options_.client; }

 private:
  // Whether the towers read values elsewhere than in options.values.
  virtual bool is_in_place() const { return false; }
  // The newest versions, if their values need no pull; else null.
  virtual absl::StatusOr<std::shared_ptr<const PulledVersions>> FindVersions() {
    return nullptr;
  }

  absl::Status BeginPull(const StepToken& token);
  // Everyone finds the values there, or nobody does.
  void ResetUse(bool is_there) ABSL_LOCKS_EXCLUDED(mu_);
  void AddWait(int parameter, absl::Time begun)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountBytes(const PulledVersions& versions);

  // Constant after construction.
  const Options options_;
  // The places of what a push brings; in memory_ if `ahead`.
  AlignedBuffer memory_;
  const std::vector<absl::Span<float>> arrivals_;
  std::vector<MutableTensorView> into_;
  // The places of what is pulled.
  std::vector<MutableTensorView> views_;

  // For the thread that begins steps. Null if the step began without one.
  std::unique_ptr<Pull> pull_;
  // The versions of values in arrivals_ that no step has taken.
  std::shared_ptr<const PulledVersions> brought_;
  absl::Time pull_begun_;
  absl::Time pulled_;
  std::shared_ptr<const PulledVersions> versions_;
  int64_t received_bytes_ = 0;
  int64_t others_bytes_ = 0;
  int64_t float32_bytes_ = 0;

  absl::Mutex mu_;
  // By tensor: its values are where the towers read them.
  std::vector<bool> is_there_ ABSL_GUARDED_BY(mu_);
  std::vector<ParameterWait> waits_ ABSL_GUARDED_BY(mu_);
  // The first error of the pull that a use has found.
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_STEP_STEP_PARAMETERS_H_
