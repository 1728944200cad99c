#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/metric/metric.h"

namespace muster {
namespace {

// The fraction of rows whose label is among their k largest outputs; of equal
// ones the first count as larger.
class TopK : public Metric {
 public:
  explicit TopK(int64_t k) : k_(k) {}

  static absl::StatusOr<std::unique_ptr<Metric>> Create(
      const Attributes& attributes, const MetricModel& model) {
    RETURN_IF_ERROR(WantClasses(model));
    const int64_t k = attributes.Int("k");
    if (k < model.num_outputs) return std::make_unique<TopK>(k);
    return absl::InvalidArgumentError(
        absl::StrCat("k must be less than the ", model.num_outputs,
                     " outputs of the model, is ", k));
  }

  std::vector<FigureDef> Figures() const override {
    return {{absl::StrCat("top_", k_, "_accuracy")}};
  }
  void Add(const MetricRows& rows) override {
    for (int64_t row = 0; row < rows.rows(); ++row) {
      if (!rows.HasAnswer(row)) continue;
      const absl::Span<const float> outputs = rows.OutputsOf(row);
      const int32_t label = rows.labels[row];
      int64_t larger = 0;
      for (int64_t k = 0; k < rows.num_outputs; ++k) {
        larger += outputs[k] > outputs[label] ||
                          (outputs[k] == outputs[label] && k < label)
                      ? 1
                      : 0;
      }
      hits_ += larger < k_ ? 1 : 0;
    }
    rows_ += rows.rows();
  }

  void Finish(MetricResult* result) const override {
    result->values.push_back(
        {absl::StrCat("top_", k_, "_accuracy"),
         static_cast<double>(hits_) / static_cast<double>(rows_)});
  }

 private:
  const int64_t k_;
  int64_t hits_ = 0;
  int64_t rows_ = 0;
};

[[maybe_unused]] const bool kRegistered = MetricRegistry::Register(
    "top_k", {"fraction of rows whose class is among the k likeliest",
              {IntAttr("k", "how many").AtLeast(1).Default(int64_t{5})},
              &TopK::Create});

}  // namespace
}  // namespace muster
