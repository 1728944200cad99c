// Layers that mnist_cnn does not have, on every backend, against PyTorch's
// float64 losses of some steps (golden/layers.txt, made by
// golden/generate_layers.py): one wrong gradient, and the second loss differs.
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

constexpr int kSteps = 8;
constexpr int64_t kRows = 3;
constexpr int64_t kExampleElements = 4 * 7 * 6;
constexpr int kClasses = 5;
constexpr double kLearningRate = 0.25;
constexpr uint64_t kExamplesStream = 100;
constexpr uint64_t kLabelsStream = 200;
// Only the order of sums differs, which the steps let grow from 1e-16.
constexpr double kFloat64Tolerance = 1e-12;
// As much larger than float64's as float32's rounding is.
constexpr double kFloat32Tolerance = 1e-4;

// One a parameter: its first values in (-1/2, 1/2) are added to this.
constexpr int kStarts[] = {0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0};

constexpr char kModel[] = R"pb(
  input_shape: [ 4, 7, 6 ]
  layer {
    name: "grouped"
    type: "conv2d"
    attr { name: "filters" i: 6 }
    attr { name: "kernel" i: 3 }
    attr { name: "pads" i: 1 }
    attr { name: "groups" i: 2 }
  }
  layer {
    name: "leaky"
    type: "leaky_relu"
    attr { name: "slope" f: 0.2 }
  }
  layer { name: "image_norm" type: "layer_norm" }
  layer {
    name: "depthwise"
    type: "depthwise_conv2d"
    attr { name: "kernel" i: 3 }
    attr { name: "stride" i: 2 }
    attr { name: "pads" i: 1 }
    attr { name: "multiplier" i: 2 }
  }
  layer {
    name: "leaky2"
    type: "leaky_relu"
    attr { name: "slope" f: 0.2 }
  }
  layer { name: "flatten" type: "flatten" }
  layer {
    name: "dense"
    type: "dense"
    attr { name: "units" i: 8 }
  }
  layer { name: "norm" type: "layer_norm" }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 5 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

// generate.py's Uniform: element i of a stream, in [0, 2^24).
int64_t Uniform(uint64_t stream, uint64_t i) {
  uint64_t z = ((stream << 32) + i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return static_cast<int64_t>((z ^ (z >> 31)) >> 40);
}

// In (-1/2, 1/2); a float.
double Centred(uint64_t stream, uint64_t i) {
  return std::ldexp(static_cast<double>(Uniform(stream, i) - (1 << 23)), -24);
}

std::vector<double> GoldenLosses() {
  std::ifstream file("tests/worker/model/golden/layers.txt");
  std::vector<double> losses;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    losses.push_back(std::stod(line.substr(line.find(' '))));
  }
  EXPECT_EQ(losses.size(), kSteps);
  return losses;
}

Batch MakeGoldenBatch() {
  Batch batch = MakeLabelledBatch(kRows, Shape({kExampleElements}));
  batch.rows = kRows;
  for (int64_t i = 0; i < kRows * kExampleElements; ++i) {
    batch.input()[i] = static_cast<float>(Centred(kExamplesStream, i));
  }
  for (int64_t i = 0; i < kRows; ++i) {
    batch.labels()[i] =
        static_cast<int32_t>(Uniform(kLabelsStream, i) % kClasses);
  }
  return batch;
}

// T: the type that the backend computes in.
template <typename T>
void ExpectPyTorchsLosses(const std::string& backend_name, double tolerance) {
  const std::unique_ptr<Backend> backend = MakeBackend(backend_name);
  CompileOptions options;
  options.backend = backend.get();
  options.batch_size = kRows;
  const auto model = Compile(ParseModel(kModel), options);
  const int num_parameters = static_cast<int>(model->parameters().size());
  for (int p = 0; p < num_parameters; ++p) {
    absl::Span<T> values = model->template parameter_as<T>(p);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<T>(Centred(p, i) + kStarts[p]);
    }
  }
  const Batch batch = MakeGoldenBatch();
  for (const double golden : GoldenLosses()) {
    const auto result = model->Step(batch, 0);
    ASSERT_THAT(result, IsOk());
    EXPECT_NEAR(result->loss, golden, tolerance);
    for (int p = 0; p < num_parameters; ++p) {
      absl::Span<T> values = model->template parameter_as<T>(p);
      const absl::Span<const T> gradient = model->template gradient_as<T>(p);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] -= static_cast<T>(kLearningRate) * gradient[i];
      }
    }
  }
}

TEST(LayerParityTest, RefFloat64AgreesWithPyTorch) {
  ExpectPyTorchsLosses<double>("ref_float64", kFloat64Tolerance);
}

TEST(LayerParityTest, RefAgreesWithPyTorch) {
  ExpectPyTorchsLosses<float>("ref", kFloat32Tolerance);
}

TEST(LayerParityTest, CpuAgreesWithPyTorch) {
  ExpectPyTorchsLosses<float>("cpu", kFloat32Tolerance);
}

}  // namespace
}  // namespace muster
