#ifndef WORKER_TOWER_COMPUTED_STEP_H_
#define WORKER_TOWER_COMPUTED_STEP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/client/push.h"
#include "worker/executor/device_trace.h"

namespace muster {

// One parameter of the model, as a step has left it: `value` is what the step
// was computed from, `gradient` what will be pushed (of a state tensor, what is
// added to its moving average). Canonical and row-major, in the model's own
// memory: the next step writes over both. The answers to a push that has begun
// write to `value`, too, unless ExchangeOptions::hooks_read_parameters.
struct StepTensor {
  std::string name;
  std::vector<int64_t> shape;
  bool trainable = true;
  absl::Span<const float> value;
  absl::Span<const float> gradient;
};

// One tower's part of a step, before the towers' gradients are averaged.
struct TowerStep {
  // "cpu:1".
  std::string device;
  // Mean over its rows, with penalties.
  double loss = 0;
  // As ComputedStep's.
  int64_t correct = 0;
  int64_t examples = 0;
  // One for each of ComputedStep::tensors; valid as long as those.
  std::vector<absl::Span<const float>> gradients;
};

// While the step stood still for a parameter that was not there yet.
struct ParameterWait {
  // In creation order.
  int tensor = 0;
  absl::Time from;
  absl::Time until;
};

// When the parts of a step began and ended; monotonic. With a pipeline_depth of
// 2 all up to `computed` lies in the step before.
struct StepTimes {
  absl::Time begun;
  // The input began with its rows, and had prepared them: ahead of the step.
  absl::Time rows_begun;
  absl::Time rows_done;
  // Its rows were wanted, and are there.
  absl::Time read_begun;
  absl::Time read;
  // Its parameters were asked for, and the last byte of them was there.
  absl::Time pull_begun;
  absl::Time pulled;
  absl::Time compute_begun;
  absl::Time computed;
  // The hooks have said whether to push.
  absl::Time decided;
  // Every shard has acknowledged.
  absl::Time pushed;
  // The report is made.
  absl::Time ended;
  // The forward pass was over and the backward pass begun; the last gradient
  // was final, and not pushed yet. None where a step is of several towers or
  // batches.
  std::optional<absl::Time> forward_end;
  std::optional<absl::Time> backward_end;
  // Between compute_begun and computed; of several towers, the first one's that
  // had to wait for that parameter.
  std::vector<ParameterWait> waits;
  // The push on its way, which may have begun before `computed`.
  std::vector<SliceSend> sends;
  // The work of each tower's device between compute_begun and computed and, if
  // parameters are updated there, the update by the push before; empty unless
  // the step is one of ProfiledSteps.
  std::vector<DeviceTrace> devices;
};

// A step whose gradients are computed, before it is decided whether they are
// pushed.
struct ComputedStep {
  // Mean over the rows, with penalties.
  double loss = 0;
  // False: nobody computes one, and it is NaN.
  bool has_loss = true;
  // Rows whose largest output is their label's; -1: not known.
  int64_t correct = 0;
  // Rows.
  int64_t examples = 0;
  // In creation order; valid until the next step. With fetch_tensors they are
  // elsewhere, and to be had by it; of towers, too.
  absl::Span<const StepTensor> tensors;
  // The gradients of rows of tables, [n, dim] each, with the tables' names and
  // no values; likewise.
  absl::Span<const StepTensor> rows;
  // At least one; valid until the next step.
  absl::Span<const TowerStep> towers;
  // Some gradients have left already, in mid-backward (PsExchange).
  bool push_begun = false;
  // Known without a look at them; else false.
  bool gradients_are_finite = false;
  // Copies what `tensors` refers to there, once; null: it is there.
  std::function<absl::Status()> fetch_tensors;
};

// The steps of this process that a profile is of: known before they are
// computed, so that only those are timed on a device.
struct ProfiledSteps {
  // Counted from 1, at least that.
  int64_t first = 1;
  // 0: no profile.
  int64_t count = 0;

  bool Has(int64_t step) const { return step >= first && !AreBefore(step); }
  // Whether all of them are.
  bool AreBefore(int64_t step) const { return step - first >= count; }
};

enum class PushDecision {
  kPush,
  // Nothing more of this step is pushed, and it does not count. The training
  // goes on with other rows.
  kRefuse,
};

}  // namespace muster

#endif  // WORKER_TOWER_COMPUTED_STEP_H_
