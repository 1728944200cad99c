#include "worker/metric/class_mean.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace muster {
namespace {

// A table of more is for nobody's eyes; as that of confusion_matrix.
constexpr int64_t kMostClasses = 1000;

double Quotient(int64_t part, int64_t whole) {
  return whole == 0 ? 0
                    : static_cast<double>(part) / static_cast<double>(whole);
}

class ClassMean : public Metric {
 public:
  ClassMean(std::string name, double ClassFigures::*figure,
            const MetricModel& model)
      : name_(std::move(name)),
        figure_(figure),
        has_classes_(model.loss.prediction == Prediction::kSoftmax),
        class_names_(OutputNames(model)),
        counts_(model.num_outputs) {}

  std::vector<FigureDef> Figures() const override { return {{name_}}; }

  void Add(const MetricRows& rows) override {
    for (int64_t row = 0; row < rows.rows(); ++row) {
      if (has_classes_) {
        AddClass(rows, row);
      } else {
        AddProbabilities(rows, row);
      }
    }
  }

  void Finish(MetricResult* result) const override {
    std::vector<ClassFigures> found;
    double sum = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      const Counts& counts = counts_[i];
      if (has_classes_ && counts.rows + counts.predicted == 0) continue;
      found.push_back(
          {class_names_[i], counts.rows,
           Quotient(counts.right, counts.predicted),
           Quotient(counts.right, counts.rows),
           Quotient(2 * counts.right, counts.rows + counts.predicted)});
      sum += found.back().*figure_;
    }
    result->values.push_back({name_, sum / static_cast<double>(found.size())});
    if (counts_.size() <= kMostClasses) result->by_class = std::move(found);
  }

 private:
  struct Counts {
    int64_t rows = 0;
    int64_t predicted = 0;
    // Both.
    int64_t right = 0;
  };

  void AddClass(const MetricRows& rows, int64_t row) {
    const int32_t label = rows.labels[row];
    ++counts_[label].rows;
    if (!rows.HasAnswer(row)) return;
    const absl::Span<const float> outputs = rows.OutputsOf(row);
    const auto predicted =
        std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
    ++counts_[predicted].predicted;
    if (predicted == label) ++counts_[label].right;
  }

  void AddProbabilities(const MetricRows& rows, int64_t row) {
    const bool has_answer = rows.HasAnswer(row);
    for (size_t i = 0; i < counts_.size(); ++i) {
      const bool is_one = rows.TargetsOf(row)[i] > 0.5f;
      const bool predicted = has_answer && rows.OutputsOf(row)[i] > 0;
      counts_[i].rows += is_one ? 1 : 0;
      counts_[i].predicted += predicted ? 1 : 0;
      counts_[i].right += is_one && predicted ? 1 : 0;
    }
  }

  const std::string name_;
  double ClassFigures::*const figure_;
  const bool has_classes_;
  const std::vector<std::string> class_names_;
  // By class, or by output.
  std::vector<Counts> counts_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Metric>> CreateClassMean(
    std::string name, double ClassFigures::*figure, const MetricModel& model) {
  RETURN_IF_ERROR(WantProbabilities(model));
  return std::make_unique<ClassMean>(std::move(name), figure, model);
}

}  // namespace muster
