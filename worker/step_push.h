#ifndef WORKER_STEP_PUSH_H_
#define WORKER_STEP_PUSH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/client/gradual_push.h"
#include "worker/client/parameter_client.h"
#include "worker/client/push_outcome.h"
#include "worker/client/tensor_view.h"
#include "worker/model/step_listener.h"

namespace muster {

// The push of one step, which may begin in mid-backward: a gradient leaves when
// it is final, while those of the layers before it are still computed. What is
// pushed is the same, to the bit, as after the step.
//
// A step may yet be refused when something has left. So that nothing that is
// not finite leaves, each gradient is looked at before, and the loss before the
// first; from the first that is not finite on, all wait for Finish. Destroyed
// before Finish the push is given up (GradualPush). One thread.
class StepPush : public StepListener {
 public:
  struct Options {
    // Both outlive the push.
    ParameterClient* client = nullptr;
    const Clock* clock = nullptr;
    // Where they lie: the same in every step, float32, one a tensor.
    std::vector<TensorView> gradients;
    // Else nothing leaves before Finish. REQUIRES:
    // client->can_push_gradually(), and that nobody changes a gradient when it
    // was heard of.
    bool early = false;
    // Whether what is not finite may leave early.
    bool allow_non_finite = false;
    // Where the new values go that come back with the push, one a tensor;
    // empty: none are wanted. With `early` they come while the step is
    // computed.
    std::vector<MutableTensorView> into;
  };

  // `options` outlives the push.
  explicit StepPush(const Options* options) : options_(*options) {}

  // Before the step is computed. Errors: as ParameterClient::Push.
  absl::Status Begin(int64_t step, int64_t round);

  void OnForward(double loss) override;
  void OnGradient(int parameter) override;

  // Pushes what has not left, and waits for the end. Errors: as
  // ParameterClient::Push.
  absl::StatusOr<PushOutcome> Finish();

  bool has_left() const { return push_ != nullptr && push_->has_left(); }
  // When the loss was heard of, and the last gradient; none if nobody said so.
  std::optional<absl::Time> forward_end() const { return forward_end_; }
  std::optional<absl::Time> backward_end() const { return backward_end_; }

 private:
  const Options& options_;
  int64_t step_ = 0;
  int64_t round_ = 0;
  // Null unless early.
  std::unique_ptr<GradualPush> push_;
  // Something is not finite.
  bool held_ = false;
  std::optional<absl::Time> forward_end_;
  std::optional<absl::Time> backward_end_;
};

}  // namespace muster

#endif  // WORKER_STEP_PUSH_H_
