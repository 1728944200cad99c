#ifndef WORKER_PROGRAM_PROGRAM_STEPS_H_
#define WORKER_PROGRAM_PROGRAM_STEPS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "proto/row_ledger.pb.h"
#include "worker/session/step_runner.h"
#include "worker/step/ps_exchange.h"
#include "worker/tower/computed_step.h"

namespace muster {

// A worker's steps whose gradients come from a program: Run brings the
// parameters, offers the step, waits until the program has given its gradients,
// and pushes them from where they lie. The session calls Run on its thread, as
// it calls TrainLoop's; the program's thread believes that it drives:
//
//   while (steps.Await(second, &offer) != State::kOver) {
//     ...                                  // compute from the values
//     RETURN_IF_ERROR(steps.Give(gradients, figures));
//   }
//
// A gradient that is final while others are computed may be given before them,
// by GiveEarly: it leaves as a layer's does in mid-backward (PsExchange).
class ProgramSteps : public StepRunner {
 public:
  enum class State { kWaiting, kStep, kOver };

  // The step that is wanted.
  struct Offer {
    int64_t step = 0;
    int64_t global_step = 0;
    int64_t model_epoch = 0;
    // The rows of the step, then those of the steps after it.
    std::vector<RowLease> leases;
    // The fate of the step before.
    double staleness = 0;
    bool dropped = false;
  };

  // The program's account of its step.
  struct Figures {
    // NaN: it has none.
    double loss = 0;
    int64_t examples = 0;
    // -1: not known.
    int64_t correct = -1;
    double learning_rate_factor = 1;
  };

  // The pointers outlive the steps.
  struct Options {
    PsExchange* exchange = nullptr;
    ParameterClient* client = nullptr;
    const Clock* clock = nullptr;
    // One a tensor: names, shapes, values where the exchange brings them.
    std::vector<StepTensor> tensors;
  };

  explicit ProgramSteps(Options options);
  // Brings the job's values of this epoch to the program's tensors, having said
  // why if it could not.
  using Bring = std::function<absl::Status(int64_t model_epoch)>;
  // Before the session's first call: those of the options that are made later.
  // Without `bring` the program ends with the values of its last step.
  void Connect(PsExchange* exchange, ParameterClient* client,
               Bring bring = nullptr) {
    options_.exchange = exchange;
    options_.client = client;
    bring_ = std::move(bring);
  }

  // ---- The session's thread ------------------------------------------------
  absl::Status Enter(const EnterEpoch& epoch) override;
  absl::StatusOr<StepReport> Run(int64_t step, const StepGrant& grant,
                                 const BeforePush& before_push) override;
  bool may_resume() const override { return unfinished_.has_value(); }
  absl::StatusOr<StepReport> Resume() override;
  void BringLast() override ABSL_LOCKS_EXCLUDED(mu_);
  // Are the values those that BringLast brought, and no later step's?
  bool has_last() const { return has_last_; }
  // After the session: the values are the job's last ones, or no use.
  void SetHasValues(bool has_values) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes the fate of a counted step, for the next Offer; see ProgramHook.
  void OnCounted(double staleness, bool dropped, int64_t global_step)
      ABSL_LOCKS_EXCLUDED(mu_);

  // ---- From any thread -----------------------------------------------------
  // Ends a Run that waits for the program, and all later ones that would, as
  // stopped (IsStopped); the step is given up.
  void StopWaiting() ABSL_LOCKS_EXCLUDED(mu_);
  // The session is over: Await says so from now on.
  void End() ABSL_LOCKS_EXCLUDED(mu_);

  // ---- The program's thread ------------------------------------------------
  // Waits for an offer for at most so long. The same one until Give, unless
  // StopWaiting withdraws it.
  State Await(absl::Duration timeout, Offer* offer) ABSL_LOCKS_EXCLUDED(mu_);
  // Are the program's tensors of the job's model? Not before the first step,
  // nor in a task that came when there was none left, and found no model.
  bool has_values() const ABSL_LOCKS_EXCLUDED(mu_);
  // One span a tensor; their memory is read until Await returns kStep or kOver.
  // Without effect if the offer was withdrawn meanwhile. Errors:
  // InvalidArgument for sizes and figures that cannot be (the same offer
  // stays); FailedPrecondition if the last Await has not returned kStep.
  // A gradient that was given early is where it was then.
  absl::Status Give(std::vector<absl::Span<float>> gradients,
                    const Figures& figures) ABSL_LOCKS_EXCLUDED(mu_);
  // Gives one gradient of the step before the others, and returns at once; as
  // Give otherwise. The step's values of that tensor are read no more: those of
  // the next step may come there. `figures`: the examples and the factor of the
  // learning rate are those that Give will say, the others are not read.
  // Errors: as Give's; InvalidArgument for one that was given.
  absl::Status GiveEarly(int tensor, absl::Span<float> gradient,
                         const Figures& figures) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Given {
    std::vector<absl::Span<float>> gradients;
    Figures figures;
  };

  // What was given before the rest of its step.
  struct Early {
    // By tensor; without memory where none was given.
    std::vector<absl::Span<float>> gradients;
    // Those that the session's thread has not seen.
    std::vector<int> unseen;
    // None: nothing was given.
    std::optional<Figures> figures;
  };

  // Offers the step.
  void MakeOffer(int64_t step, const StepGrant& grant) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for the offer's gradients; those that come early leave meanwhile.
  // Errors: stopped.
  absl::StatusOr<Given> AwaitGradients(int64_t step, const StepToken& token)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for gradients that are given early; none: all are given, or stopped.
  Early AwaitEarly() ABSL_LOCKS_EXCLUDED(mu_);
  // Lets them leave, if the exchange does.
  void PushEarly(const Early& early, const StepToken& token);
  // Lets the push say what the step is.
  void UseFigures(const Figures& figures, const StepToken& token);
  // Lets exchange and hooks find the gradients.
  void UseGradients(const std::vector<absl::Span<float>>& gradients);
  ComputedStep Computed(const StepReport& report) const;
  absl::Status CheckGradient(size_t tensor, absl::Span<float> gradient) const;
  absl::Status CheckGradients(
      absl::Span<const absl::Span<float>> gradients) const;
  // Can the figures be, of the step that is offered?
  absl::Status CheckFigures(const Figures& figures) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The same, of a step of which gradients were given early.
  absl::Status CheckSame(const Figures& figures) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the step that was pushed.
  absl::StatusOr<StepReport> Conclude(StepReport report,
                                      absl::StatusOr<StepResult> result);
  void GiveUpUnfinished();
  bool IsAnyGivenOrStopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return given_.has_value() || !early_.unseen.empty() || stopped_;
  }
  bool IsOfferedOrOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return offer_.has_value() || over_;
  }
  absl::Time Now() const { return options_.clock->Now(); }

  // For the session's thread.
  Options options_;
  Bring bring_;
  int64_t model_epoch_ = 0;
  bool has_last_ = false;
  // The step whose gradients are with some of the shards.
  std::optional<StepReport> unfinished_;
  // The program, as hooks see a worker's only tower.
  TowerStep tower_;
  // The step's push knows its figures.
  bool has_figures_ = false;

  mutable absl::Mutex mu_;
  // The step that the program is to compute; none: it has none, or gave it.
  std::optional<Offer> offer_ ABSL_GUARDED_BY(mu_);
  std::optional<Given> given_ ABSL_GUARDED_BY(mu_);
  Early early_ ABSL_GUARDED_BY(mu_);
  // The next offer, as far as it is known: the fate of the step before.
  Offer next_ ABSL_GUARDED_BY(mu_);
  // The last Await has returned kStep.
  bool is_shown_ ABSL_GUARDED_BY(mu_) = false;
  bool has_values_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster

#endif  // WORKER_PROGRAM_PROGRAM_STEPS_H_
