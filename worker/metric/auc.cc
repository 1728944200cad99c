#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/metric/metric.h"

namespace muster {
namespace {

// Appends log(p / (1 - p)) of each class, p = softmax(x): in the order of p,
// and different where p would be rounded to 1. Summed in one order, so that
// rows of the same outputs are equal whichever class has which.
void AppendLogOdds(absl::Span<const float> outputs,
                   std::vector<double>* scores) {
  std::vector<double> sorted(outputs.begin(), outputs.end());
  std::sort(sorted.rbegin(), sorted.rend());
  const double largest = sorted[0];
  const double second = sorted[1];
  double rest = 0;
  double rest_by_second = 0;
  for (size_t i = 1; i < sorted.size(); ++i) {
    rest += std::exp(sorted[i] - largest);
    rest_by_second += std::exp(sorted[i] - second);
  }
  for (const float output : outputs) {
    const double below = output - largest;
    scores->push_back(below == 0
                          ? largest - second - std::log(rest_by_second)
                          : below - std::log(1 + rest - std::exp(below)));
  }
}

// The fraction of pairs of a row that is one and a row that is not in which the
// first has the larger score; equal ones count half. nullopt without such
// pairs.
std::optional<double> AreaOf(std::vector<std::pair<double, bool>> rows) {
  std::sort(rows.begin(), rows.end());
  int64_t ones = 0;
  int64_t others = 0;
  int64_t half_pairs = 0;
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    int64_t equal_ones = 0;
    while (end < rows.size() && rows[end].first == rows[begin].first) {
      equal_ones += rows[end++].second ? 1 : 0;
    }
    const int64_t equal_others = static_cast<int64_t>(end - begin) - equal_ones;
    half_pairs += equal_ones * (2 * others + equal_others);
    ones += equal_ones;
    others += equal_others;
  }
  if (ones == 0 || others == 0) return std::nullopt;
  return static_cast<double>(half_pairs) / 2 / static_cast<double>(ones) /
         static_cast<double>(others);
}

// The area under the ROC curve, exactly: of two classes by the difference of
// their outputs, of one probability by its output; else the mean over classes
// (each against the rest) or outputs. Those that have no row, or all, are left
// out. NaN if that leaves none, or if a row has no answer. Keeps 8 bytes and a
// bit a row (of more than two classes or outputs: for each) until the end.
class Auc : public Metric {
 public:
  explicit Auc(const MetricModel& model)
      : has_classes_(model.loss.prediction == Prediction::kSoftmax),
        columns_(has_classes_ && model.num_outputs == 2 ? 1
                                                        : model.num_outputs) {}

  static absl::StatusOr<std::unique_ptr<Metric>> Create(
      const Attributes& /*attributes*/, const MetricModel& model) {
    RETURN_IF_ERROR(WantProbabilities(model));
    return std::make_unique<Auc>(model);
  }

  std::vector<FigureDef> Figures() const override { return {{"auc"}}; }

  void Add(const MetricRows& rows) override {
    for (int64_t row = 0; row < rows.rows(); ++row) {
      if (!rows.HasAnswer(row)) {
        all_have_answers_ = false;
        continue;
      }
      if (has_classes_) {
        AddClass(rows.OutputsOf(row), rows.labels[row]);
        continue;
      }
      for (int64_t i = 0; i < columns_; ++i) {
        scores_.push_back(rows.OutputsOf(row)[i]);
        is_one_.push_back(rows.TargetsOf(row)[i] > 0.5f);
      }
    }
  }

  void Finish(MetricResult* result) const override {
    double sum = 0;
    int64_t defined = 0;
    for (int64_t column = 0; column < columns_; ++column) {
      const std::optional<double> area = AreaOf(Column(column));
      if (!area.has_value()) continue;
      sum += *area;
      ++defined;
    }
    const bool is_number = defined > 0 && all_have_answers_;
    result->values.push_back(
        {"auc", is_number ? sum / static_cast<double>(defined)
                          : std::numeric_limits<double>::quiet_NaN()});
    if (defined == 0) {
      result->remarks.push_back(
          "auc: all rows that have an answer are of one class: there is none "
          "(null)");
    } else if (defined < columns_) {
      result->remarks.push_back(
          absl::StrCat("auc: the mean over ", defined, " of ", columns_,
                       has_classes_ ? " classes" : " outputs",
                       ": the others have no row, or all"));
    }
  }

 private:
  void AddClass(absl::Span<const float> outputs, int32_t label) {
    if (columns_ == 1) {
      scores_.push_back(static_cast<double>(outputs[1]) - outputs[0]);
      is_one_.push_back(label == 1);
      return;
    }
    AppendLogOdds(outputs, &scores_);
    for (int64_t i = 0; i < columns_; ++i) is_one_.push_back(label == i);
  }

  std::vector<std::pair<double, bool>> Column(int64_t column) const {
    std::vector<std::pair<double, bool>> rows;
    rows.reserve(scores_.size() / columns_);
    for (size_t i = column; i < scores_.size(); i += columns_) {
      rows.emplace_back(scores_[i], is_one_[i]);
    }
    return rows;
  }

  const bool has_classes_;
  const int64_t columns_;
  // [rows, columns]
  std::vector<double> scores_;
  std::vector<bool> is_one_;
  bool all_have_answers_ = true;
};

[[maybe_unused]] const bool kRegistered = MetricRegistry::Register(
    "auc",
    {"area under the ROC curve, exact; of several classes or outputs the "
     "mean of each against the rest; keeps a score a row",
     {},
     &Auc::Create});

}  // namespace
}  // namespace muster
