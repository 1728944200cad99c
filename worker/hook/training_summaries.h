#ifndef WORKER_HOOK_TRAINING_SUMMARIES_H_
#define WORKER_HOOK_TRAINING_SUMMARIES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "common/optimizer/learning_rate.h"
#include "common/summary/write_summary.h"
#include "proto/summary.pb.h"
#include "worker/hook/hook.h"
#include "worker/hook/step_period.h"

namespace muster {

// Whether a training's steps count the rows that are right.
enum class AccuracyCurve { kDrawn, kNone };

// The hook that writes points of the training's curves every so many global
// steps, from this worker's own steps:
//   loss, accuracy   means over the steps since the last point; each if the
//                    steps have it
//   gradient_norm    sqrt of the sum of squares of all gradients of one step,
//                    of the trainable parameters
//   learning_rate    of the next update
//   tower_N/loss, tower_N/gradient_norm
//                    the same of each tower by itself, if there are several
// At the end the steps since the last point get one of their own.
class TrainingSummaries : public Hook {
 public:
  // The factor of the learning rate of an update.
  using RateFactor = std::function<double(int64_t update)>;

  // `rate_factor` null: 1.
  TrainingSummaries(int64_t every_steps, AccuracyCurve accuracy_curve,
                    const LearningRate& learning_rate, WriteSummary write,
                    RateFactor rate_factor = nullptr);

  absl::Status AfterEnter(const EpochRecord& epoch) override;
  absl::StatusOr<PushDecision> BeforePush(const StepRecord& step) override;
  absl::Status AfterStep(const StepRecord& step) override;
  absl::Status AtEnd(const EndRecord& end) override;

 private:
  // The sums that make the next point.
  struct Sums {
    int64_t steps = 0;
    double loss = 0;
    bool has_loss = true;
    double accuracy = 0;
    int64_t global_step = 0;
    // The time of the steps, and of their waits for rows.
    absl::Duration length;
    absl::Duration waited;
  };

  // One tower's part of the next point.
  struct TowerPoint {
    double loss_sum = 0;
    // The values of the step that is being pushed.
    double loss = 0;
    double gradient_norm = 0;
  };

  void TakeNorms(const StepRecord& step);
  // Appends to `summary`, writes it, and begins the next point.
  void WritePoint(Summary summary);

  const AccuracyCurve accuracy_curve_;
  const LearningRate learning_rate_;
  const WriteSummary write_;
  const RateFactor rate_factor_;
  StepPeriod period_;
  Sums sums_;
  // The step that is being pushed gets a point.
  bool due_ = false;
  double gradient_norm_ = 0;
  // Empty for one tower.
  std::vector<TowerPoint> towers_;
};

}  // namespace muster

#endif  // WORKER_HOOK_TRAINING_SUMMARIES_H_
