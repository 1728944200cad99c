#ifndef WORKER_HOOK_WATCHED_EVALUATIONS_H_
#define WORKER_HOOK_WATCHED_EVALUATIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/base/reporter.h"
#include "proto/evaluation_history.pb.h"
#include "worker/hook/best_keeper.h"
#include "worker/hook/evaluation.h"
#include "worker/hook/evaluation_watch.h"
#include "worker/hook/hook.h"
#include "worker/hook/step_period.h"

namespace muster {

// The hook of what follows from a chief's evaluations: a line for each best
// one, the end of the job by stop.plateau, the learning rate's factor. It
// counts one evaluation for each multiple of `every_steps`, over all starts of
// the chief: its history goes to ps task 0 with each question for a step, and
// comes back with each epoch. The training thread calls all. Stands before
// Evaluation.
class WatchedEvaluations : public Hook {
 public:
  WatchedEvaluations(const EvaluationWatch::Options& options,
                     int64_t every_steps, Reporter reporter,
                     RequestStop stop_job);

  // Whether anything is watched.
  bool is_on() const { return watch_.is_on(); }

  // Before the first step: `keeper`, which outlives this, saves the best model.
  // `settle` makes of an epoch's evaluations those that the run goes on from.
  using Settle = std::function<EvaluationHistory(int64_t model_epoch,
                                                 EvaluationHistory known)>;
  void KeepBest(BestKeeper* keeper, Settle settle);

  absl::Status AfterEnter(const EpochRecord& epoch) override;

  // For Evaluation::AddListener.
  void OnEvaluation(int64_t global_step, const EvaluationResult& result);

  // With a best model that is saved by now.
  EvaluationHistory history() const;

 private:
  EvaluationWatch::Outcome Count(int64_t global_step,
                                 const EvaluationResult& result);
  // Says of each figure whose best value is that of `global_step`.
  void ReportBest(int64_t global_step) const;
  // Says once that nothing is kept yet, where that is so.
  void ReportNothingKept(int64_t global_step);
  // "validation_loss has not become better than 0.25 of step 100 for 3
  // evaluations: "
  static std::string DescribePlateau(const WatchedFigure& figure,
                                     int32_t evaluations);
  void ReportFactor() const;

  const EvaluationWatch::Options options_;
  const Reporter reporter_;
  const RequestStop stop_job_;
  EvaluationWatch watch_;
  // Null without checkpoint.keep_best.
  BestKeeper* keeper_ = nullptr;
  Settle settle_;
  // Since the newest evaluation that is counted.
  StepPeriod period_;
  bool has_reported_nothing_kept_ = false;
};

}  // namespace muster

#endif  // WORKER_HOOK_WATCHED_EVALUATIONS_H_
