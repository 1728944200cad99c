#ifndef WORKER_STEP_PARAMETERS_H_
#define WORKER_STEP_PARAMETERS_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/tensor/aligned_buffer.h"
#include "proto/parameter_service.pb.h"
#include "worker/client/gradual_pull.h"
#include "worker/client/parameter_client.h"
#include "worker/client/pulled_versions.h"
#include "worker/client/tensor_view.h"
#include "worker/computed_step.h"
#include "worker/model/parameter_gate.h"

namespace muster {

// The values that steps are computed from, in the memory that all towers read.
// A step begins while they are on their way, and waits for each parameter just
// before it first reads it. Step after step: Begin, BeforeUse on the towers'
// threads, Finish; all else is for one thread, and not meanwhile.
//
// `ahead`: the values of the next step arrive while those of this one are still
// read, in memory of their own, and are copied where they are first used.
class StepParameters : public ParameterGate {
 public:
  struct Options {
    // Both outlive this.
    ParameterClient* client = nullptr;
    const Clock* clock = nullptr;
    // By tensor, what the towers read.
    std::vector<absl::Span<float>> values;
    bool ahead = false;
  };

  explicit StepParameters(Options options);

  // Asks for the values of the next Begin. REQUIRES: `ahead`, no other Fetch
  // before a Begin. Errors: InvalidArgument.
  absl::Status Fetch(const StepToken& token);

  // The values change from now on: to those of Fetch, or else to those that are
  // asked for now. Errors: InvalidArgument.
  absl::Status Begin(const StepToken& token);

  // Thread-safe. Errors: those of the pull.
  absl::Status BeforeUse(int parameter) override;

  // Waits for those that nobody has asked for. Errors: those of the pull.
  absl::Status Finish();

  // What was asked for is of no use: gives it up.
  void Drop();

  // There has been a Fetch for the next Begin.
  bool is_fetched() const { return next_ != nullptr; }

  // ---- Of the step that has begun -----------------------------------------

  // What it failed of, if that was the pull.
  absl::Status failure() const;
  // Of the values; after Finish, until the next Begin.
  const std::shared_ptr<const PulledVersions>& versions() const {
    return versions_;
  }
  // For StepTimes: the pull, and who has waited for it.
  absl::Time pull_begun() const { return pull_begun_; }
  absl::Time pulled() const { return pulled_; }
  std::vector<ParameterWait> TakeWaits();

 private:
  void AddWait(int parameter, absl::Time begun)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  const Options options_;
  // Where pulled values arrive.
  AlignedBuffer memory_;  // empty unless `ahead`
  std::vector<absl::Span<float>> arrivals_;
  std::vector<MutableTensorView> into_;

  // Of the thread that begins steps. The pull of the step, and, `ahead`, that
  // of the next one.
  std::unique_ptr<GradualPull> pull_;
  std::unique_ptr<GradualPull> next_;
  absl::Time next_begun_;
  absl::Time pull_begun_;
  absl::Time pulled_;
  std::shared_ptr<const PulledVersions> versions_;

  mutable absl::Mutex mu_;
  // By tensor: its values are where the towers read them.
  std::vector<bool> is_there_ ABSL_GUARDED_BY(mu_);
  std::vector<ParameterWait> waits_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_STEP_PARAMETERS_H_
