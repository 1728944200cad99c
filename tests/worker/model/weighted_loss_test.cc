// Losses of weighted rows against PyTorch's (golden/weights.txt), on each
// backend and through each executor.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"
#include "worker/input/row_weights.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// generate_weights.py's.
constexpr int kRows = 6;
constexpr int kFeatures = 4;
constexpr int kOutputs = 3;
constexpr int kSteps = 4;
constexpr double kLearningRate = 0.5;
constexpr float kClassWeights[] = {1.0f, 5.0f, 0.25f};
constexpr uint64_t kExamplesStream = 100;
constexpr uint64_t kLabelsStream = 200;
constexpr uint64_t kRowsStream = 300;
// float32 sums of numbers of about 1.
constexpr double kTolerance = 1e-6;

// generate.py's Uniform: element i of a stream, in [0, 2^24).
int64_t Uniform(uint64_t stream, uint64_t i) {
  uint64_t z = ((stream << 32) + i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return static_cast<int64_t>((z ^ (z >> 31)) >> 40);
}
float Fraction(uint64_t stream, uint64_t i) {
  return std::ldexp(static_cast<float>(Uniform(stream, i)), -24);
}

std::vector<double> GoldenLosses(const std::string& wanted) {
  std::ifstream file("tests/worker/model/golden/weights.txt");
  std::vector<double> losses;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string name;
    size_t step = 0;
    double loss = 0;
    fields >> name >> step >> loss;
    if (name == wanted) losses.push_back(loss);
  }
  EXPECT_EQ(losses.size(), kSteps) << wanted;
  return losses;
}

// `name`: of golden/weights.txt, "softmax_rows".
Batch GoldenBatch(const std::string& name) {
  const bool has_classes = absl::StartsWith(name, "softmax");
  Batch batch =
      MakeLabelledBatch(kRows, Shape({kFeatures}), has_classes ? 0 : kOutputs);
  batch.Add(kBatchWeights, FLOAT32, Shape(), kRows);
  batch.rows = kRows;
  for (int i = 0; i < kRows * kFeatures; ++i) {
    batch.input()[i] = Fraction(kExamplesStream, i);
  }
  for (int i = 0; i < kRows * kOutputs && !has_classes; ++i) {
    batch.targets()[i] = Fraction(kLabelsStream, i);
  }
  for (int i = 0; i < kRows; ++i) {
    float& weight = batch.weights()[i];
    weight = absl::EndsWith(name, "_classes")
                 ? 1.0f
                 : static_cast<float>(Uniform(kRowsStream, i) % 8);
    if (!has_classes) continue;
    batch.labels()[i] =
        static_cast<int32_t>(Uniform(kLabelsStream, i) % kOutputs);
    if (!absl::EndsWith(name, "_rows")) {
      weight *= kClassWeights[batch.labels()[i]];
    }
  }
  NormalizeWeights({&batch, 1});
  return batch;
}

std::string LossLayer(const std::string& name) {
  if (absl::StartsWith(name, "softmax")) return "softmax_cross_entropy";
  return absl::StartsWith(name, "sigmoid") ? "sigmoid_cross_entropy"
                                           : "mean_squared_error";
}

ModelSpec OneLayer(const std::string& name, const std::string& more = "") {
  return ParseModel(absl::Substitute(
      R"(name: "one" input_shape: $0 $3
         layer { name: "logits" type: "dense" attr { name: "units" i: $1 } }
         layer { name: "loss" type: "$2" })",
      kFeatures, kOutputs, LossLayer(name), more));
}

CompileOptions Weighted(Backend* backend) {
  CompileOptions options;
  options.backend = backend;
  options.batch_size = kRows;
  options.weighted = true;
  return options;
}

template <typename T>
void SetFirstValues(CompiledModel* model) {
  for (int p = 0; p < 2; ++p) {
    absl::Span<T> values = model->parameter_as<T>(p);
    for (size_t i = 0; i < values.size(); ++i) values[i] = Fraction(p, i);
  }
}

// T: the type that the backend computes in.
template <typename T>
void ExpectPyTorchsLosses(const std::string& backend_name) {
  for (const char* const name :
       {"softmax_rows", "softmax_classes", "softmax_both", "sigmoid_rows",
        "squared_rows"}) {
    SCOPED_TRACE(absl::StrCat(name, " on ", backend_name));
    const std::unique_ptr<Backend> backend = MakeBackend(backend_name);
    const auto model = Compile(OneLayer(name), Weighted(backend.get()));
    SetFirstValues<T>(model.get());
    const Batch batch = GoldenBatch(name);
    for (const double golden : GoldenLosses(name)) {
      const auto result = model->Step(batch, 0);
      ASSERT_THAT(result, IsOk());
      EXPECT_NEAR(result->loss, golden, kTolerance);
      for (int p = 0; p < 2; ++p) {
        absl::Span<T> values = model->parameter_as<T>(p);
        const absl::Span<const T> gradient = model->gradient_as<T>(p);
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] -= static_cast<T>(kLearningRate) * gradient[i];
        }
      }
    }
  }
}

TEST(WeightedLossTest, BackendsAgreeWithPyTorch) {
  ExpectPyTorchsLosses<double>("ref_float64");
  ExpectPyTorchsLosses<float>("ref");
  ExpectPyTorchsLosses<float>("cpu");
}

TEST(WeightedLossTest, ADeviceGetsTheWeights) {
  ExpectPyTorchsLosses<float>("device_of_cpu");
}

// The last row but one alone has a weight.
TEST(WeightedLossTest, TheLossIsThatOfTheRowThatWeighs) {
  const std::unique_ptr<Backend> backend = MakeBackend("cpu");
  Batch batch = GoldenBatch("softmax_rows");
  for (int i = 0; i < kRows; ++i) batch.weights()[i] = i == 4 ? 0.001f : 0;
  NormalizeWeights({&batch, 1});
  const auto weighted = Compile(OneLayer("softmax"), Weighted(backend.get()));
  SetFirstValues<float>(weighted.get());
  const auto loss = weighted->Step(batch, 0);
  ASSERT_THAT(loss, IsOk());
  CompileOptions options = Weighted(backend.get());
  options.weighted = false;
  options.batch_size = 1;
  const auto alone = Compile(OneLayer("softmax"), options);
  SetFirstValues<float>(alone.get());
  Batch row = MakeLabelledBatch(1, Shape({kFeatures}));
  row.rows = 1;
  std::copy_n(batch.input().begin() + 4 * kFeatures, kFeatures,
              row.input().begin());
  row.labels()[0] = batch.labels()[4];
  const auto wanted = alone->Step(row, 0);
  ASSERT_THAT(wanted, IsOk());
  EXPECT_NEAR(loss->loss, wanted->loss, kTolerance);
  EXPECT_NEAR(weighted->gradient(1)[0], alone->gradient(1)[0], kTolerance);
}

TEST(WeightedLossTest, RowsThatWeighNothingHaveNoLossAndNoGradient) {
  for (const char* const name : {"softmax", "sigmoid", "squared"}) {
    const std::unique_ptr<Backend> backend = MakeBackend("cpu");
    const auto model = Compile(OneLayer(name), Weighted(backend.get()));
    SetFirstValues<float>(model.get());
    Batch batch = GoldenBatch(name);
    for (float& weight : batch.weights()) weight = 0;
    NormalizeWeights({&batch, 1});
    const auto result = model->Step(batch, 0);
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->loss, 0) << name;
    for (const float value : model->gradient(0)) EXPECT_EQ(value, 0) << name;
  }
}

// A pipeline's micro-batches have one loss, whose rows they weigh together.
TEST(WeightedLossTest, MicroBatchesWeighTogether) {
  const std::unique_ptr<Backend> backend = MakeBackend("cpu");
  const std::unique_ptr<Backend> other = MakeBackend("cpu");
  CompileOptions options = Weighted(backend.get());
  options.more_backends = {other.get()};
  options.device_of = [](absl::string_view layer, int) {
    return layer == "loss" ? 1 : 0;
  };
  const auto model =
      Compile(OneLayer("softmax", "pipeline { micro_batches: 3 }"), options);
  SetFirstValues<float>(model.get());
  const auto result = model->Step(GoldenBatch("softmax_both"), 0);
  ASSERT_THAT(result, IsOk());
  EXPECT_NEAR(result->loss, GoldenLosses("softmax_both")[0], kTolerance);
}

TEST(WeightedLossTest, ABatchWithoutWeightsIsRefused) {
  const std::unique_ptr<Backend> backend = MakeBackend("cpu");
  const auto model = Compile(OneLayer("softmax"), Weighted(backend.get()));
  Batch batch = MakeLabelledBatch(kRows, Shape({kFeatures}));
  batch.rows = kRows;
  EXPECT_THAT(model->Step(batch, 0).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("weights")));
}

}  // namespace
}  // namespace muster
