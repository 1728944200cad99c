#include <cmath>
#include <memory>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/metric/metric.h"

namespace muster {
namespace {

// The root of the mean over rows and outputs of (x - z)^2, x the output and z
// its target.
class RootMeanSquaredError : public Metric {
 public:
  static absl::StatusOr<std::unique_ptr<Metric>> Create(
      const Attributes& /*attributes*/, const MetricModel& model) {
    RETURN_IF_ERROR(WantTargets(model));
    return std::make_unique<RootMeanSquaredError>();
  }

  std::vector<FigureDef> Figures() const override {
    return {{"root_mean_squared_error", /*smaller_is_better=*/true}};
  }
  void Add(const MetricRows& rows) override {
    for (size_t i = 0; i < rows.outputs.size(); ++i) {
      const double error =
          static_cast<double>(rows.outputs[i]) - rows.targets[i];
      sum_ += error * error;
    }
    count_ += static_cast<int64_t>(rows.outputs.size());
  }

  void Finish(MetricResult* result) const override {
    result->values.push_back({"root_mean_squared_error",
                              std::sqrt(sum_ / static_cast<double>(count_))});
  }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

[[maybe_unused]] const bool kRegistered = MetricRegistry::Register(
    "root_mean_squared_error", {"root of the mean of (output - target)^2",
                                {},
                                &RootMeanSquaredError::Create});

}  // namespace
}  // namespace muster
