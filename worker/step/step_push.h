#ifndef WORKER_STEP_STEP_PUSH_H_
#define WORKER_STEP_STEP_PUSH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/client/client_model.h"
#include "worker/client/parameter_client.h"
#include "worker/client/push.h"
#include "worker/executor/step_listener.h"
#include "worker/step/step_parameters.h"

namespace muster {

// The push of one step, which may begin in mid-backward: a gradient leaves when
// it is final, while those of the layers before it are still computed. What is
// pushed is the same, to the bit, as after the step.
//
// A step may yet be refused when something has left. So that nothing that is
// not finite leaves, each gradient is looked at before, and the loss before the
// first; from the first that is not finite on, all wait for Leave. Destroyed
// before Finish the push is given up (Push). One thread.
class StepPush : public StepListener {
 public:
  struct Options {
    // All outlive the push.
    ParameterClient* client = nullptr;
    const Clock* clock = nullptr;
    // What the gradients were computed from. The same.
    StepParameters* parameters = nullptr;
    // Where they lie: the same in every step, float32, one a tensor.
    std::vector<TensorView> gradients;
    // Else nothing leaves before Leave. REQUIRES: nobody changes a gradient
    // when it was heard of.
    bool early = false;
    // Whether what is not finite may leave early.
    bool allow_non_finite = false;
    // The push brings new values, to parameters->into(). With `early` they come
    // while the step is computed.
    bool brings_values = false;
  };

  // `options` outlives the push. The round is that of the step's token.
  StepPush(const Options* options, int64_t step, int64_t round)
      : options_(*options), step_(step), round_(round) {}

  // Errors: those of the pull, of which all must be there before anything
  // leaves; as ParameterClient::PushAndWait.
  absl::Status OnForward(double loss) override;
  void OnGradient(int parameter) override;

  // The gradients are, or will be, of the parameters as they are now, which
  // must be finished. Nothing leaves yet. Errors: as
  // ParameterClient::PushAndWait.
  absl::Status Begin();

  // Begins, unless that was done, and pushes what has not left, without
  // waiting.
  absl::Status Leave();

  // The same, unless that was done, and waits for the end.
  absl::StatusOr<PushResult> Finish();

  int64_t step() const { return step_; }
  bool has_left() const { return push_ != nullptr && push_->has_left(); }
  // When the loss was heard of, and the last gradient; none if nobody said so.
  std::optional<absl::Time> forward_end() const { return forward_end_; }
  std::optional<absl::Time> backward_end() const { return backward_end_; }

 private:
  const Options& options_;
  const int64_t step_;
  const int64_t round_;
  // Null until something may leave.
  std::unique_ptr<Push> push_;
  // Something is not finite.
  bool held_ = false;
  std::optional<absl::Time> forward_end_;
  std::optional<absl::Time> backward_end_;
};

}  // namespace muster

#endif  // WORKER_STEP_STEP_PUSH_H_
