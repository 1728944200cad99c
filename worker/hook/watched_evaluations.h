#ifndef WORKER_HOOK_WATCHED_EVALUATIONS_H_
#define WORKER_HOOK_WATCHED_EVALUATIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/base/reporter.h"
#include "proto/evaluation_history.pb.h"
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

  absl::Status AfterEnter(const EpochRecord& epoch) override;

  // For Evaluation::AddListener.
  void OnEvaluation(int64_t global_step, const EvaluationResult& result);

  const EvaluationHistory& history() const { return watch_.history(); }

 private:
  // Says of each figure whose best value is that of `global_step`.
  void ReportBest(int64_t global_step) const;
  // "validation_loss has not become better than 0.25 of step 100 for 3
  // evaluations: "
  static std::string DescribePlateau(const WatchedFigure& figure,
                                     int32_t evaluations);
  void ReportFactor() const;

  const EvaluationWatch::Options options_;
  const Reporter reporter_;
  const RequestStop stop_job_;
  EvaluationWatch watch_;
  // Since the newest evaluation that is counted.
  StepPeriod period_;
};

}  // namespace muster

#endif  // WORKER_HOOK_WATCHED_EVALUATIONS_H_
