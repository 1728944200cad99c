#ifndef WORKER_HOOK_HOOK_H_
#define WORKER_HOOK_HOOK_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/evaluation_history.pb.h"
#include "worker/tower/computed_step.h"

namespace muster {

// One step of this worker.
struct StepRecord {
  // The count of this worker's steps since it started.
  int64_t step = 0;
  // The job's, when this step was counted; before that, when it was granted.
  int64_t global_step = 0;
  // Mean over the step's rows, with penalties.
  double loss = 0;
  // As ComputedStep's.
  bool has_loss = true;
  // Fraction of the step's rows whose largest output is their label's; NaN: not
  // known.
  double accuracy = 0;
  // Rows.
  int64_t examples = 0;
  // Updates between the pull and the apply, the mean over the shards.
  double staleness = 0;
  // Synchronous replication: its gradient came too late and is in no update. In
  // AfterStep only; JobState has the exact counts.
  bool dropped = false;
  // Monotonic, when the step was counted.
  absl::Time now;
  // In AfterStep only.
  StepTimes times;
  // Parameters and gradients, in BeforePush only (then empty). Who looks at
  // them, or at those of towers, calls FetchTensors first.
  absl::Span<const StepTensor> tensors;
  // Of rows of tables, as in ComputedStep; in BeforePush only.
  absl::Span<const StepTensor> rows;
  // Each tower's results, in BeforePush only.
  absl::Span<const TowerStep> towers;
  // Some gradients have left already, in BeforePush only.
  bool push_begun = false;
  // As in ComputedStep.
  bool gradients_are_finite = false;
  std::function<absl::Status()> fetch_tensors;

  // Brings `tensors` from where the step was computed. Errors: the device's.
  absl::Status FetchTensors() const {
    return fetch_tensors == nullptr ? absl::OkStatus() : fetch_tensors();
  }
};

// A model epoch that this worker begins to train in.
struct EpochRecord {
  int64_t model_epoch = 0;
  int64_t global_step = 0;
  // The chief of this process initialized it; there is no checkpoint yet.
  bool initialized = false;
  // It went on without this process, which has not loaded it.
  bool attached = false;
  // The job's, until then.
  EvaluationHistory evaluations;
  absl::Time now;
};

// The end of the training in this process.
struct EndRecord {
  int64_t global_step = 0;
  // False after a signal: be quick.
  bool completed = false;
  // A hook ended it for a failure: the model is not worth saving.
  bool failed = false;
  // An operator wants the model not to be saved.
  bool is_discarded = false;
  std::string stop_reason;
  absl::Time now;
};

// The way of a chief's hook to end the job: nobody takes another step, the
// model is saved and evaluated, and `reason` goes into result.json. After a
// `failure` that is not OK the model is not saved, and the exit code is 1 with
// that message. The first call counts; on other workers there is no effect. On
// the training thread.
using RequestStop =
    std::function<void(absl::string_view reason, const absl::Status& failure)>;

// Callbacks around a worker's steps:
//
//   class SayLoss : public Hook {
//     absl::Status AfterStep(const StepRecord& step) override {
//       std::cout << step.global_step << " " << step.loss << "\n";
//       return absl::OkStatus();
//     }
//   };
//
// All calls come from the training thread, in the order of README.md; work that
// takes longer than a step belongs on a thread of the hook's own. An error from
// BeforePush, AfterStep or AfterWait ends the training with that error; one
// from AtEnd makes the exit code not 0 (the later hooks run all the same).
class Hook {
 public:
  virtual ~Hook() = default;

  virtual absl::Status AfterEnter(const EpochRecord& epoch) {
    static_cast<void>(epoch);
    return absl::OkStatus();
  }
  // Gradients are computed, and the step is not reported: global_step and
  // staleness are not those of the finished step yet. After kRefuse the later
  // hooks are not asked, the step has no AfterStep, and nothing more of it is
  // pushed. With push_begun finite gradients of some layers have left: in
  // synchronous replication nobody uses them, else they are applied.
  virtual absl::StatusOr<PushDecision> BeforePush(const StepRecord& step) {
    static_cast<void>(step);
    return PushDecision::kPush;
  }
  // The step is acknowledged by all shards and counted.
  virtual absl::Status AfterStep(const StepRecord& step) {
    static_cast<void>(step);
    return absl::OkStatus();
  }
  // This worker may take a step, but has reported none with its question: its
  // first one in an epoch, or one that has waited for others. In synchronous
  // replication the model stays that of `global_step` until this worker has
  // pushed, if no update is made without it.
  virtual absl::Status AfterWait(int64_t global_step) {
    static_cast<void>(global_step);
    return absl::OkStatus();
  }
  virtual absl::Status AtEnd(const EndRecord& end) {
    static_cast<void>(end);
    return absl::OkStatus();
  }
};

}  // namespace muster

#endif  // WORKER_HOOK_HOOK_H_
