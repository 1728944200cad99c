#include <algorithm>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "worker/metric/metric.h"

namespace muster {
namespace {

// The fraction of rows whose largest output (the first of equals) is their
// label's; or, where each output is a probability by itself, of those all of
// whose outputs are on their target's side.
class Accuracy : public Metric {
 public:
  explicit Accuracy(bool has_classes) : has_classes_(has_classes) {}

  static absl::StatusOr<std::unique_ptr<Metric>> Create(
      const Attributes& /*attributes*/, const MetricModel& model) {
    if (model.loss.prediction == Prediction::kIdentity) {
      return absl::InvalidArgumentError(
          "wanted a model of classes or of probabilities, found a loss that "
          "compares numbers; mean_absolute_error is for them");
    }
    return std::make_unique<Accuracy>(model.loss.prediction ==
                                      Prediction::kSoftmax);
  }

  std::vector<FigureDef> Figures() const override { return {{"accuracy"}}; }
  void Add(const MetricRows& rows) override {
    for (int64_t row = 0; row < rows.rows(); ++row) {
      if (!rows.HasAnswer(row)) continue;
      const absl::Span<const float> outputs = rows.OutputsOf(row);
      if (has_classes_) {
        const auto largest = std::max_element(outputs.begin(), outputs.end());
        correct_ += largest - outputs.begin() == rows.labels[row] ? 1 : 0;
      } else {
        correct_ += std::equal(outputs.begin(), outputs.end(),
                               rows.TargetsOf(row).begin(), &IsOnItsSide)
                        ? 1
                        : 0;
      }
    }
    rows_ += rows.rows();
  }

  void Finish(MetricResult* result) const override {
    result->values.push_back({"accuracy", static_cast<double>(correct_) /
                                              static_cast<double>(rows_)});
  }

 private:
  static bool IsOnItsSide(float output, float target) {
    return (output > 0) == (target > 0.5f);
  }

  const bool has_classes_;
  int64_t correct_ = 0;
  int64_t rows_ = 0;
};

[[maybe_unused]] const bool kRegistered = MetricRegistry::Register(
    "accuracy", {"fraction of rows that are right", {}, &Accuracy::Create});

}  // namespace
}  // namespace muster
