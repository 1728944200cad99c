#ifndef WORKER_HOOK_EVALUATION_WATCH_H_
#define WORKER_HOOK_EVALUATION_WATCH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/evaluation_history.pb.h"
#include "proto/training.pb.h"
#include "worker/hook/evaluation.h"
#include "worker/metric/metric.h"

namespace muster {

// How two values of a figure are compared.
struct FigureRule {
  // With its half: "validation_loss"; "": nothing is watched.
  std::string metric;
  bool smaller_is_better = false;
  double min_change = 0;

  // A value that is not finite is never better.
  bool IsBetter(double value, double best) const;
};

// Decisions of a training by its evaluations: the best model, the end on a
// plateau, the learning rate's factor. State that outlives the process is an
// EvaluationHistory. One thread.
class EvaluationWatch {
 public:
  struct Options {
    FigureRule kept;
    FigureRule stop;
    int32_t stop_patience = 0;
    FigureRule schedule;
    int32_t schedule_patience = 0;
    double factor = 1;
  };
  // The consequences of one evaluation.
  struct Outcome {
    // Its model is the best one so far.
    bool is_best = false;
    // stop.plateau is reached.
    bool stops = false;
    // The learning rate has become smaller.
    bool lowers_rate = false;
  };

  // The rules of a training whose evaluations make `figures`, each with its
  // half. Errors: InvalidArgument naming the field: a figure that no evaluation
  // makes (lists those there are), a patience less than 1, a min_change less
  // than 0.
  static absl::StatusOr<Options> OptionsOf(
      const TrainingSpec& training, const std::vector<FigureDef>& figures);

  explicit EvaluationWatch(Options options) : options_(std::move(options)) {}

  // Whether anything is watched.
  bool is_on() const {
    return !options_.kept.metric.empty() || !options_.stop.metric.empty() ||
           !options_.schedule.metric.empty();
  }

  // Goes on from there; what another figure was watched by is forgotten.
  void Enter(EvaluationHistory history);

  // Counts in an evaluation, of the model at `global_step`. One that does not
  // make a figure says nothing of it. An evaluation of a step that the history
  // has already changes nothing.
  Outcome Add(int64_t global_step, const EvaluationResult& result);

  // Counts in for the best model alone an evaluation that is none of those that
  // Add counts. Returns whether its model is the best one so far.
  bool AddKept(int64_t global_step, const EvaluationResult& result);

  // stop.plateau is reached.
  bool stops() const {
    return !options_.stop.metric.empty() &&
           history_.stop().bad_evaluations() >= options_.stop_patience;
  }

  const EvaluationHistory& history() const { return history_; }

 private:
  const Options options_;
  EvaluationHistory history_;
};

}  // namespace muster

#endif  // WORKER_HOOK_EVALUATION_WATCH_H_
