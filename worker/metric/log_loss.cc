#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/metric/metric.h"

namespace muster {
namespace {

// -log(softmax(x)[label]), without an exp that overflows.
double ClassLoss(absl::Span<const float> outputs, int32_t label) {
  const double largest = *std::max_element(outputs.begin(), outputs.end());
  double sum = 0;
  for (const float output : outputs) sum += std::exp(output - largest);
  return std::log(sum) + largest - outputs[label];
}

// The mean over outputs of -z log(s) - (1 - z) log(1 - s), s = sigmoid(x).
double ProbabilityLoss(absl::Span<const float> outputs,
                       absl::Span<const float> targets) {
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const double x = outputs[i];
    sum +=
        std::max(x, 0.0) - x * targets[i] + std::log1p(std::exp(-std::abs(x)));
  }
  return sum / static_cast<double>(outputs.size());
}

// The mean over rows of the cross entropy: the model's loss without penalties
// and label smoothing. NaN if a row has no answer.
class LogLoss : public Metric {
 public:
  explicit LogLoss(bool has_classes) : has_classes_(has_classes) {}

  static absl::StatusOr<std::unique_ptr<Metric>> Create(
      const Attributes& /*attributes*/, const MetricModel& model) {
    RETURN_IF_ERROR(WantProbabilities(model));
    return std::make_unique<LogLoss>(model.loss.prediction ==
                                     Prediction::kSoftmax);
  }

  std::vector<FigureDef> Figures() const override {
    return {{"log_loss", /*smaller_is_better=*/true}};
  }
  void Add(const MetricRows& rows) override {
    for (int64_t row = 0; row < rows.rows(); ++row) {
      if (!rows.HasAnswer(row)) {
        sum_ = std::numeric_limits<double>::quiet_NaN();
      } else if (has_classes_) {
        sum_ += ClassLoss(rows.OutputsOf(row), rows.labels[row]);
      } else {
        sum_ += ProbabilityLoss(rows.OutputsOf(row), rows.TargetsOf(row));
      }
    }
    rows_ += rows.rows();
  }

  void Finish(MetricResult* result) const override {
    result->values.push_back({"log_loss", sum_ / static_cast<double>(rows_)});
  }

 private:
  const bool has_classes_;
  double sum_ = 0;
  int64_t rows_ = 0;
};

[[maybe_unused]] const bool kRegistered = MetricRegistry::Register(
    "log_loss", {"mean cross entropy of classes or of probabilities, without "
                 "penalties or label smoothing",
                 {},
                 &LogLoss::Create});

}  // namespace
}  // namespace muster
