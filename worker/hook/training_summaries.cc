#include "worker/hook/training_summaries.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/summary/summary_value.h"
#include "worker/tower/sum_of_squares.h"

namespace muster {

TrainingSummaries::TrainingSummaries(int64_t every_steps,
                                     AccuracyCurve accuracy_curve,
                                     const LearningRate& learning_rate,
                                     WriteSummary write, RateFactor rate_factor)
    : accuracy_curve_(accuracy_curve),
      learning_rate_(learning_rate),
      write_(std::move(write)),
      rate_factor_(std::move(rate_factor)),
      period_(every_steps) {}

absl::Status TrainingSummaries::AfterEnter(const EpochRecord& epoch) {
  period_.Start(epoch.global_step);
  sums_ = {};
  towers_.clear();
  due_ = false;
  return absl::OkStatus();
}

// The step will be counted as the next one, or later if others are quicker.
absl::StatusOr<PushDecision> TrainingSummaries::BeforePush(
    const StepRecord& step) {
  due_ = period_.IsOver(step.global_step + 1);
  if (step.towers.size() > 1) {
    towers_.resize(step.towers.size());
    for (size_t t = 0; t < towers_.size(); ++t) {
      towers_[t].loss = step.towers[t].loss;
    }
  }
  if (!due_) return PushDecision::kPush;
  RETURN_IF_ERROR(step.FetchTensors());
  TakeNorms(step);
  return PushDecision::kPush;
}

void TrainingSummaries::TakeNorms(const StepRecord& step) {
  double sum = 0;
  for (const StepTensor& tensor : step.tensors) {
    if (tensor.trainable) sum += SumOfSquares(tensor.gradient);
  }
  gradient_norm_ = std::sqrt(sum);
  for (size_t t = 0; t < towers_.size(); ++t) {
    sum = 0;
    for (size_t i = 0; i < step.tensors.size(); ++i) {
      if (!step.tensors[i].trainable) continue;
      sum += SumOfSquares(step.towers[t].gradients[i]);
    }
    towers_[t].gradient_norm = std::sqrt(sum);
  }
}

absl::Status TrainingSummaries::AfterStep(const StepRecord& step) {
  ++sums_.steps;
  sums_.loss += step.loss;
  sums_.has_loss = step.has_loss;
  sums_.accuracy += step.accuracy;
  sums_.global_step = step.global_step;
  sums_.waited += step.times.read - step.times.read_begun;
  sums_.length += step.times.ended - step.times.begun;
  for (TowerPoint& tower : towers_) tower.loss_sum += tower.loss;
  if (!std::exchange(due_, false)) return absl::OkStatus();
  Summary summary;
  AddScalar("gradient_norm", gradient_norm_, &summary);
  for (size_t t = 0; t < towers_.size(); ++t) {
    AddScalar(absl::StrCat("tower_", t, "/gradient_norm"),
              towers_[t].gradient_norm, &summary);
  }
  WritePoint(std::move(summary));
  return absl::OkStatus();
}

absl::Status TrainingSummaries::AtEnd(const EndRecord& end) {
  static_cast<void>(end);
  if (sums_.steps > 0) WritePoint(Summary());
  return absl::OkStatus();
}

void TrainingSummaries::WritePoint(Summary summary) {
  const auto steps = static_cast<double>(sums_.steps);
  if (sums_.has_loss) AddScalar("loss", sums_.loss / steps, &summary);
  if (accuracy_curve_ == AccuracyCurve::kDrawn && !std::isnan(sums_.accuracy)) {
    AddScalar("accuracy", sums_.accuracy / steps, &summary);
  }
  for (size_t t = 0; t < towers_.size(); ++t) {
    AddScalar(absl::StrCat("tower_", t, "/loss"),
              std::exchange(towers_[t].loss_sum, 0) / steps, &summary);
  }
  if (sums_.length > absl::ZeroDuration()) {
    AddScalar("input_wait", absl::FDivDuration(sums_.waited, sums_.length),
              &summary);
  }
  const double factor =
      rate_factor_ == nullptr ? 1 : rate_factor_(sums_.global_step + 1);
  AddScalar("learning_rate", learning_rate_.At(sums_.global_step) * factor,
            &summary);
  write_(sums_.global_step, std::move(summary));
  period_.Start(sums_.global_step);
  sums_ = {};
}

}  // namespace muster
