#ifndef WORKER_STEP_STEP_EXCHANGE_H_
#define WORKER_STEP_STEP_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/parameter_service.pb.h"
#include "worker/client/push.h"
#include "worker/executor/parameter_gate.h"
#include "worker/executor/step_listener.h"
#include "worker/input/batch.h"
#include "worker/tower/computed_step.h"

namespace muster {

// A step whose gradients were given.
struct StepResult {
  // When the last shard had acknowledged; in the past if nothing was sent.
  absl::Time pushed = absl::InfinitePast();
  std::vector<SliceSend> sends;
  int64_t staleness = 0;
  // The gradients came too late for their round, and were dropped.
  bool late = false;
};

// The bytes of all values that came through, each part counted once: as they
// were sent, and as float32.
struct ExchangedBytes {
  int64_t sent = 0;
  int64_t sent_float32 = 0;
  int64_t received = 0;
  int64_t received_float32 = 0;
  // Those of `sent` and `received` that went to, or came from, a ps task in
  // another process, and the pushes that they are of.
  int64_t sent_to_others = 0;
  int64_t received_from_others = 0;
  int64_t pushes = 0;
};

// How the steps of a worker get their parameters and give their gradients.
// TrainLoop calls it and knows nothing else of either:
//
//   exchange->BeginStep(step, token);
//   ASSIGN_OR_RETURN(ParameterGate* gate, exchange->Prepare(batches, token));
//   // the towers compute; they ask `gate`, and tell `exchange` as a listener
//   RETURN_IF_ERROR(exchange->OnComputed(computed, &times));
//   RETURN_IF_ERROR(exchange->Send());
//   ASSIGN_OR_RETURN(StepResult result, exchange->Finish());
//   exchange->EndStep();
//
// A Finish that failed for want of an answer may be followed by Resume and
// another one, also after the same epoch was entered once more.
//
// Where it computes ahead the next step goes from Prepare to OnComputed between
// Send and Finish, and its BeginStep is followed by Send. One thread, but for
// the gate.
class StepExchange : public StepListener {
 public:
  struct Capabilities {
    // Prepare wants the step's batches. Else it may be called before they are
    // read: the parameters come meanwhile.
    bool wants_batches = false;
    // Towers may compute the next step between Send and Finish.
    bool computes_ahead = false;
  };

  virtual Capabilities capabilities() const { return {}; }

  // Goes on in this epoch, without what was asked for, or brought, before.
  virtual void Enter(int64_t model_epoch,
                     absl::Span<const uint64_t> ps_incarnations) = 0;

  // From now on gradients are given as those of `step`.
  virtual void BeginStep(int64_t step, const StepToken& token) = 0;

  // Says of the step that began what its worker's progress is once it is done.
  // Before OnForward and Send. A step without it says nothing.
  virtual void SetCounts(StepCounts /*counts*/) {}

  // Lets the parameters of the next step come to where the towers read them;
  // the gate tells when each is there, null: all are. It is valid until
  // OnComputed. Errors: InvalidArgument; those of an exchange that began.
  virtual absl::StatusOr<ParameterGate*> Prepare(
      absl::Span<const SeededBatch> batches, const StepToken& token) = 0;

  // The loss and, if one tower computes one batch, each gradient: they may
  // leave already. Errors: those of the parameters.
  absl::Status OnForward(double /*loss*/) override { return absl::OkStatus(); }
  void OnGradient(int /*parameter*/) override {}

  // The towers are done, with this status. Waits for the parameters that none
  // has used, and fills in their times. Errors: why the parameters did not
  // come, else `computed`.
  virtual absl::Status OnComputed(const absl::Status& computed,
                                  StepTimes* times) = 0;
  // Adds the exchange's part of what hooks are told before they decide.
  virtual void Describe(ComputedStep* computed) const = 0;

  // Gives the gradients, as they lie there now, without waiting. Errors: as
  // ParameterClient::Push.
  virtual absl::Status Send() = 0;
  // Waits until that is done. Errors: the same; Aborted if the epoch is over.
  virtual absl::StatusOr<StepResult> Finish() = 0;
  // After a Finish that failed: are the gradients held, of which some shards
  // may have made an update, and others not?
  virtual bool may_resume() const { return false; }
  // Gives them again to who has not said to have them, as those of the same
  // step. Finish is next. REQUIRES: may_resume().
  virtual void Resume() {}
  // Gives up what was not finished. After every step.
  virtual void EndStep() = 0;

  virtual ExchangedBytes bytes() const { return {}; }
};

}  // namespace muster

#endif  // WORKER_STEP_STEP_EXCHANGE_H_
