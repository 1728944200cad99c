#ifndef WORKER_PROGRAM_PROGRAM_STEPS_H_
#define WORKER_PROGRAM_PROGRAM_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "proto/program.pb.h"
#include "proto/row_ledger.pb.h"
#include "worker/client/table_rows.h"
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
// Rows of sparse tables come when the program asks for them:
//
//   steps.PullRows(0, ids, values, second);   // kStep: they are there
//   steps.GiveRows(0, ids, gradients);        // before Give, with its step
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
    // By number.
    std::vector<ProgramTable> tables = {};
  };

  explicit ProgramSteps(Options options);
  // Brings the job's values of this epoch to the program's tensors, having said
  // why if it could not.
  using Bring = std::function<absl::Status(int64_t model_epoch)>;
  // Before the session's first call: those of the options that are made later.
  // Without `bring` the program ends with the values of its last step.
  void Connect(PsExchange* exchange, ParameterClient* client,
               Bring bring = nullptr) ABSL_LOCKS_EXCLUDED(mu_) {
    options_.exchange = exchange;
    options_.client = client;
    bring_ = std::move(bring);
    absl::MutexLock lock(&mu_);
    disconnected_ = false;
  }
  // Before the client goes: no rows are pulled from it any more. Waits for a
  // pull under way, which ends when its ps tasks answer, or soon are given up.
  void Disconnect() ABSL_LOCKS_EXCLUDED(mu_);

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
  // Not in a job with tables (FailedPrecondition).
  absl::Status GiveEarly(int tensor, absl::Span<float> gradient,
                         const Figures& figures) ABSL_LOCKS_EXCLUDED(mu_);

  // Brings rows of a table, ids [n], which may repeat, `into` [n, dim], as they
  // are for the step that is offered, and waits for an offer if there is none.
  // kStep: they are there; kWaiting: not in `timeout`, call again with the
  // same; kOver: the job is over for this worker. A ps that does not answer is
  // given up a few seconds later than the timeout. If it was started anew the
  // offer is withdrawn, and rows come with the next one, whose values the
  // program's tensors then have. Give has no effect for the step that was
  // withdrawn, and Await shows the next one. After kWaiting and errors the
  // contents of `into` are a mixture. Errors: InvalidArgument for a table or
  // sizes that cannot be.
  absl::StatusOr<State> PullRows(int table, absl::Span<const int64_t> ids,
                                 absl::Span<float> into, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The gradients of rows of a table, distinct ids [n], gradients [n, dim],
  // which leave with Give's of the step; at most once a table. The memory is as
  // Give's. A table without has no rows in the step. Without effect as Give.
  // Errors: as Give's; InvalidArgument for a repeated id, and a table whose
  // rows were given.
  absl::Status GiveRows(int table, absl::Span<const int64_t> ids,
                        absl::Span<const float> gradients)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Given {
    std::vector<absl::Span<float>> gradients;
    Figures figures;
    std::vector<RowGradients> rows;
    // Those of the rows that the step has pulled.
    std::vector<int64_t> row_versions;
  };

  // A pull of rows under way, and the offer that it is for.
  struct RowPull {
    int64_t offer = 0;
    StepToken token;
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
  // The same of rows.
  void UseRows(const Given& given);
  ComputedStep Computed(const StepReport& report) const;
  // Waits for an offer, and begins a pull for it; none: kWaiting or kOver.
  std::optional<RowPull> BeginRowPull(absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Its offer is withdrawn if it has failed.
  void EndRowPull(const RowPull& pull,
                  const absl::StatusOr<std::vector<int64_t>>& versions)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckRows(int table, absl::string_view what, size_t ids,
                         size_t values) const;
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
    return given_.has_value() || !early_.unseen.empty() || stopped_ ||
           !withdrawn_.ok();
  }
  bool IsOfferedOrOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return offer_.has_value() || over_;
  }
  bool MayPullRowsOrOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return (offer_.has_value() && !disconnected_) || over_;
  }
  bool IsNotPulling() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return row_pulls_ == 0;
  }
  // The offer is the one that Await has shown.
  bool IsShownStill() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return offer_.has_value() && shown_offer_ == offers_;
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
  // The rows that were given, as hooks see them.
  std::vector<StepTensor> rows_;

  mutable absl::Mutex mu_;
  // The step that the program is to compute; none: it has none, or gave it.
  std::optional<Offer> offer_ ABSL_GUARDED_BY(mu_);
  std::optional<Given> given_ ABSL_GUARDED_BY(mu_);
  Early early_ ABSL_GUARDED_BY(mu_);
  // The next offer, as far as it is known: the fate of the step before.
  Offer next_ ABSL_GUARDED_BY(mu_);
  // How many offers were made; the one that the last Await has shown.
  int64_t offers_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t shown_offer_ ABSL_GUARDED_BY(mu_) = 0;
  // Of the offer: its token, the rows that were given, and the versions of
  // those that were pulled.
  StepToken token_ ABSL_GUARDED_BY(mu_);
  std::vector<RowGradients> given_rows_ ABSL_GUARDED_BY(mu_);
  std::vector<int64_t> row_versions_ ABSL_GUARDED_BY(mu_);
  // Why the step is given up: its rows could not be pulled.
  absl::Status withdrawn_ ABSL_GUARDED_BY(mu_);
  int row_pulls_ ABSL_GUARDED_BY(mu_) = 0;
  bool disconnected_ ABSL_GUARDED_BY(mu_) = false;
  // The last Await has returned kStep.
  bool is_shown_ ABSL_GUARDED_BY(mu_) = false;
  bool has_values_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster

#endif  // WORKER_PROGRAM_PROGRAM_STEPS_H_
