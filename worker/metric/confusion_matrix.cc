#include <algorithm>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/metric/metric.h"

namespace muster {
namespace {

// A table of this size is the most that a person, or result.json, has room for.
constexpr int64_t kMostClasses = 1000;

// How many rows of each class (a row of the table) were taken for each class (a
// column). One without an answer is in no column.
class ConfusionMatrix : public Metric {
 public:
  explicit ConfusionMatrix(int64_t classes)
      : counts_(classes, std::vector<int64_t>(classes)) {}

  static absl::StatusOr<std::unique_ptr<Metric>> Create(
      const Attributes& /*attributes*/, const MetricModel& model) {
    RETURN_IF_ERROR(WantClasses(model));
    if (model.num_outputs <= kMostClasses) {
      return std::make_unique<ConfusionMatrix>(model.num_outputs);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("wanted at most ", kMostClasses, " classes, found ",
                     model.num_outputs));
  }

  std::vector<FigureDef> Figures() const override { return {}; }
  void Add(const MetricRows& rows) override {
    for (int64_t row = 0; row < rows.rows(); ++row) {
      if (!rows.HasAnswer(row)) continue;
      const absl::Span<const float> outputs = rows.OutputsOf(row);
      const auto largest = std::max_element(outputs.begin(), outputs.end());
      ++counts_[rows.labels[row]][largest - outputs.begin()];
    }
  }

  void Finish(MetricResult* result) const override {
    result->tables.push_back({"confusion_matrix", counts_});
  }

 private:
  std::vector<std::vector<int64_t>> counts_;
};

[[maybe_unused]] const bool kRegistered = MetricRegistry::Register(
    "confusion_matrix",
    {"table of classes (rows) by what they were taken for (columns)",
     {},
     &ConfusionMatrix::Create});

}  // namespace
}  // namespace muster
