// Metrics beside scikit-learn's in 1,000 random cases (golden.txt, made by
// generate_golden.py): ties, classes that no row has, one class only, one row,
// rows without an answer.
#include <cmath>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/metric/metric_set.h"

namespace muster {
namespace {

constexpr int kCases = 1000;
// Sums in another order, in float64.
constexpr double kTolerance = 1e-11;

// Knuth's MMIX generator.
class Random {
 public:
  explicit Random(uint64_t seed) : state_((seed + 1) * 0x9E3779B97F4A7C15) {}

  int64_t Below(int64_t count) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<int64_t>((state_ >> 33) % count);
  }

 private:
  uint64_t state_;
};

enum Kind { kClasses, kProbability, kProbabilities, kNumbers };

// As generate_golden.py draws it.
struct Case {
  explicit Case(int number) : kind(static_cast<Kind>(number % 4)) {
    Random random(number);
    const int64_t classes = 2 + random.Below(5);
    const int64_t numbers = 1 + random.Below(3);
    const int64_t by_kind[] = {classes, 1, 3, numbers};
    num_outputs = by_kind[kind];
    const int64_t rows = 1 + random.Below(40);
    const int64_t all_steps[] = {3, 9, 41};
    const int64_t steps = all_steps[random.Below(3)];
    const int64_t all_values[] = {num_outputs, 2, 2, 5};
    const int64_t values = 1 + random.Below(all_values[kind]);
    const bool has_nan = random.Below(8) == 0;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < num_outputs; ++i) {
        const int64_t step = random.Below(steps) - steps / 2;
        outputs.push_back(static_cast<float>(step) / 4);
      }
      if (has_nan && random.Below(5) == 0) {
        outputs[row * num_outputs + random.Below(num_outputs)] = std::nanf("");
      }
      if (kind == kClasses) {
        labels.push_back(static_cast<int32_t>(random.Below(values)));
        continue;
      }
      for (int64_t i = 0; i < num_outputs; ++i) {
        targets.push_back(static_cast<float>(random.Below(values)));
      }
    }
  }

  MetricModel Model() const {
    const Prediction prediction = kind == kClasses   ? Prediction::kSoftmax
                                  : kind == kNumbers ? Prediction::kIdentity
                                                     : Prediction::kSigmoid;
    return {num_outputs, {kind != kClasses, prediction, {}}};
  }

  const Kind kind;
  int64_t num_outputs = 0;
  std::vector<float> outputs;
  std::vector<int32_t> labels;
  std::vector<float> targets;
};

std::vector<std::string> GoldenLines() {
  std::ifstream file("tests/worker/metric/golden.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (line[0] != '#') lines.push_back(line);
  }
  return lines;
}

std::vector<double> FiguresOf(const Case& one) {
  const char* const kText =
      one.kind == kNumbers
          ? "metric { type: 'r2' }"
          : "metric { type: 'precision' } metric { type: 'recall' } "
            "metric { type: 'f1' } metric { type: 'auc' } "
            "metric { type: 'log_loss' }";
  EvaluationSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kText, &spec));
  auto metrics = MetricSet::Create(spec, one.Model());
  EXPECT_THAT(metrics, IsOk());
  MetricRows rows;
  rows.outputs = one.outputs;
  rows.labels = one.labels;
  rows.targets = one.targets;
  rows.num_outputs = one.num_outputs;
  metrics->Add(rows);
  std::vector<double> figures;
  for (const auto& value : metrics->Finish().values) {
    figures.push_back(value.value);
  }
  return figures;
}

TEST(MetricGoldenTest, AThousandRandomCasesAreAsInScikitLearn) {
  const std::vector<std::string> lines = GoldenLines();
  ASSERT_EQ(lines.size(), kCases);
  for (int number = 0; number < kCases; ++number) {
    const std::vector<double> figures = FiguresOf(Case(number));
    std::istringstream words(lines[number]);
    for (size_t i = 0; i < figures.size(); ++i) {
      std::string word;
      ASSERT_TRUE(words >> word) << number;
      const double wanted = std::stod(word);
      SCOPED_TRACE(testing::Message() << "case " << number << " figure " << i);
      ASSERT_EQ(std::isnan(figures[i]), std::isnan(wanted)) << figures[i];
      if (std::isnan(wanted)) continue;
      ASSERT_NEAR(figures[i], wanted, kTolerance * (1 + std::abs(wanted)));
    }
  }
}

}  // namespace
}  // namespace muster
