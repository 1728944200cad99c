#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/metric/metric.h"

namespace muster {
namespace {

// 1 - sum (x - z)^2 / sum (z - mean(z))^2 over rows, x the output and z its
// target; the mean over outputs. An output whose targets are all equal has none
// and is left out. NaN if that leaves nothing, or if a row has no answer.
class R2 : public Metric {
 public:
  explicit R2(int64_t num_outputs) : outputs_(num_outputs) {}

  static absl::StatusOr<std::unique_ptr<Metric>> Create(
      const Attributes& /*attributes*/, const MetricModel& model) {
    RETURN_IF_ERROR(WantTargets(model));
    return std::make_unique<R2>(model.num_outputs);
  }

  std::vector<FigureDef> Figures() const override { return {{"r2"}}; }

  void Add(const MetricRows& rows) override {
    for (int64_t row = 0; row < rows.rows(); ++row) {
      ++rows_;
      if (!rows.HasAnswer(row)) all_have_answers_ = false;
      for (size_t i = 0; i < outputs_.size(); ++i) {
        outputs_[i].Add(rows.OutputsOf(row)[i], rows.TargetsOf(row)[i], rows_);
      }
    }
  }

  void Finish(MetricResult* result) const override {
    double sum = 0;
    int64_t defined = 0;
    for (const Output& output : outputs_) {
      if (output.spread == 0) continue;
      sum += 1 - output.errors / output.spread;
      ++defined;
    }
    const bool is_number = defined > 0 && all_have_answers_;
    result->values.push_back(
        {"r2", is_number ? sum / static_cast<double>(defined)
                         : std::numeric_limits<double>::quiet_NaN()});
    if (defined == 0) {
      result->remarks.push_back(
          "r2: the targets are all equal: there is none (null)");
    } else if (defined < static_cast<int64_t>(outputs_.size())) {
      result->remarks.push_back(
          absl::StrCat("r2: the mean over ", defined, " of ", outputs_.size(),
                       " outputs: the targets of the others are all equal"));
    }
  }

 private:
  struct Output {
    // Welford, "Note on a Method for Calculating Corrected Sums of Squares and
    // Products", 1962: exactly 0 for equal targets.
    void Add(double output, double target, int64_t rows) {
      errors += (output - target) * (output - target);
      const double delta = target - mean;
      mean += delta / static_cast<double>(rows);
      spread += delta * (target - mean);
    }

    double errors = 0;
    double mean = 0;
    double spread = 0;
  };

  std::vector<Output> outputs_;
  int64_t rows_ = 0;
  bool all_have_answers_ = true;
};

[[maybe_unused]] const bool kRegistered = MetricRegistry::Register(
    "r2", {"part of the targets' variance that the outputs explain; none of "
           "targets that are all equal",
           {},
           &R2::Create});

}  // namespace
}  // namespace muster
