#ifndef WORKER_SESSION_STEP_RUNNER_H_
#define WORKER_SESSION_STEP_RUNNER_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/session/session_messages.h"
#include "worker/tower/computed_step.h"

namespace muster {

// The taker of a worker's steps: TrainLoop, or a test's fake. One thread.
class StepRunner {
 public:
  virtual ~StepRunner() = default;

  // Decides, when gradients are computed, whether they are pushed; an error
  // ends the step too, and is returned by Run.
  using BeforePush =
      std::function<absl::StatusOr<PushDecision>(const ComputedStep&)>;

  // Goes on in this epoch. Errors: InvalidArgument.
  virtual absl::Status Enter(const EnterEpoch& epoch) = 0;

  // Pulls, computes, pushes; returns when every shard has acknowledged, or
  // with an abandoned report after a refusal, whose rows are passed over. The
  // token goes with the pull and its round with the push; without a round the
  // mode has none. The rows are those of the grant's first lease; those of the
  // others are prepared meanwhile.
  // Errors: Aborted (fenced), Unavailable and DeadlineExceeded (a ps is gone):
  // the step is given up, unless it is resumed; others are fatal. REQUIRES:
  // !may_resume(), and the grant has a lease.
  virtual absl::StatusOr<StepReport> Run(int64_t step, const StepGrant& grant,
                                         const BeforePush& before_push) = 0;

  // Has the last Run or Resume failed while its gradients were on their way?
  // Some shards may have them: in the same epoch Resume sends the others what
  // they lack; another epoch gives the step up.
  virtual bool may_resume() const = 0;
  // Returns, or fails, as Run. REQUIRES: may_resume(), and the epoch was
  // entered once more.
  virtual absl::StatusOr<StepReport> Resume() = 0;

  // From the next step on, devices are timed in these, too
  // (StepTimes::devices). Nobody times them by default.
  virtual void TraceDevices(const ProfiledSteps& steps) {
    static_cast<void>(steps);
  }

  // This task's training is over, and the shards still serve what has become of
  // the model: the chief has saved it. Brings it to where it is wanted after
  // the end; nowhere by default.
  virtual void BringLast() {}
};

// The source of the model that a new epoch begins with: ModelLoader.
class ModelSource {
 public:
  virtual ~ModelSource() = default;

  // Restores the newest checkpoint, or initializes; returns the event that
  // tells which, or why neither.
  virtual LoadEvent Load(const LoadModel& epoch) = 0;

  // The largest epoch of any checkpoint; 0 if there is none. A new one must be
  // larger: what is still on its way from an old one must not fit.
  virtual int64_t SavedEpoch() { return 0; }
};

}  // namespace muster

#endif  // WORKER_SESSION_STEP_RUNNER_H_
