// The MNIST CNN of the zoo against PyTorch's float64 losses (golden/losses.txt,
// made by golden/generate.py): 20 steps of each update rule.
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/optimizer/update_rule.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

constexpr int kSteps = 20;
constexpr int kRows = 4;
constexpr int kBatches = 4;
constexpr int64_t kExampleElements = 28 * 28;
constexpr int kClasses = 10;
constexpr uint64_t kExamplesStream = 100;
constexpr uint64_t kLabelsStream = 200;
// Of each parameter: the amplitude of its first values is 2^-exponent.
constexpr int kExponents[] = {3, 6, 4, 6, 5, 6, 4, 6};

// generate.py's Uniform: element i of a stream, in [0, 2^24).
int64_t Uniform(uint64_t stream, uint64_t i) {
  uint64_t z = ((stream << 32) + i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return static_cast<int64_t>((z ^ (z >> 31)) >> 40);
}

Batch GoldenBatch(int index) {
  Batch batch;
  batch.rows = kRows;
  batch.examples = AlignedBuffer(kRows * kExampleElements * sizeof(float));
  for (int64_t i = 0; i < kRows * kExampleElements; ++i) {
    batch.examples.as<float>()[i] = std::ldexp(
        static_cast<float>(Uniform(kExamplesStream + index, i)), -24);
  }
  for (int64_t i = 0; i < kRows; ++i) {
    batch.labels.push_back(
        static_cast<int32_t>(Uniform(kLabelsStream + index, i) % kClasses));
  }
  return batch;
}

using Losses = std::map<std::string, std::vector<double>>;

Losses ReadGoldenLosses() {
  std::ifstream file("tests/worker/model/golden/losses.txt");
  EXPECT_TRUE(file.good());
  Losses losses;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string rule;
    size_t step = 0;
    double loss = 0;
    fields >> rule >> step >> loss;
    EXPECT_EQ(step, losses[rule].size());
    losses[rule].push_back(loss);
  }
  return losses;
}

OptimizerSpec RuleSpec(const std::string& rule) {
  static const std::map<std::string, std::string> kSettings = {
      {"sgd", "name: 'sgd' attr { name: 'learning_rate' f: 0.05 }"},
      {"momentum",
       "name: 'momentum' attr { name: 'learning_rate' f: 0.02 } "
       "attr { name: 'momentum' f: 0.9 }"},
      {"nesterov",
       "name: 'nesterov' attr { name: 'learning_rate' f: 0.02 } "
       "attr { name: 'momentum' f: 0.9 }"},
      {"adagrad", "name: 'adagrad' attr { name: 'learning_rate' f: 0.001 }"},
      {"rmsprop",
       "name: 'rmsprop' attr { name: 'learning_rate' f: 0.0002 } "
       "attr { name: 'decay' f: 0.9 }"},
      {"adam", "name: 'adam' attr { name: 'learning_rate' f: 0.001 }"},
      {"adamw",
       "name: 'adamw' attr { name: 'learning_rate' f: 0.001 } "
       "attr { name: 'weight_decay' f: 0.01 }"},
  };
  OptimizerSpec spec;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(kSettings.at(rule), &spec));
  return spec;
}

// One parameter's slots.
template <typename T>
class Slots {
 public:
  Slots(const UpdateRuleOf<T>& rule, size_t elements) {
    for (const auto& def : rule.slots()) {
      values_.emplace_back(elements, def.initial_value);
    }
    for (std::vector<T>& slot : values_) pointers_.push_back(slot.data());
  }
  absl::Span<T* const> pointers() const { return pointers_; }

 private:
  std::vector<std::vector<T>> values_;
  std::vector<T*> pointers_;
};

// Trains the zoo's mnist_cnn and returns the loss of each step.
template <typename T>
std::vector<double> Train(const std::string& backend_name,
                          const std::string& rule_name, int steps) {
  const std::unique_ptr<Backend> backend = MakeBackend(backend_name);
  CompileOptions options;
  options.backend = backend.get();
  options.batch_size = kRows;
  const std::unique_ptr<CompiledModel> model =
      Compile(LoadZooModel("mnist_cnn").model(), options);
  auto rule = CreateReferenceRule<T>(RuleSpec(rule_name));
  EXPECT_TRUE(rule.ok()) << rule.status();
  std::vector<Slots<T>> slots;
  for (size_t p = 0; p < model->parameters().size(); ++p) {
    absl::Span<T> values = model->template parameter_as<T>(p);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::ldexp(static_cast<T>(Uniform(p, i) - (1 << 23)),
                             -(23 + kExponents[p]));
    }
    slots.emplace_back(**rule, values.size());
  }
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const auto result = model->Step(GoldenBatch(step % kBatches), 0);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) break;
    losses.push_back(result->loss);
    for (size_t p = 0; p < slots.size(); ++p) {
      absl::Span<T> values = model->template parameter_as<T>(p);
      (*rule)->Apply({step + 1}, model->template gradient_as<T>(p).data(),
                     values.data(), slots[p].pointers(), values.size());
    }
  }
  return losses;
}

void ExpectLosses(const std::vector<double>& losses, const std::string& rule,
                  size_t first, size_t last, double tolerance) {
  const std::vector<double> golden = ReadGoldenLosses()[rule];
  ASSERT_EQ(golden.size(), kSteps);
  ASSERT_LE(last, losses.size());
  for (size_t i = first; i < last; ++i) {
    EXPECT_NEAR(losses[i], golden[i], tolerance) << rule << " step " << i;
  }
}

class ParityFloat64Test : public testing::TestWithParam<std::string> {};

TEST_P(ParityFloat64Test, RefAgreesWithPyTorch) {
  // Both are double: only the order of sums differs, and 20 steps let that
  // grow from 1e-15.
  constexpr double kTolerance = 1e-9;
  ExpectLosses(Train<double>("ref_float64", GetParam(), kSteps), GetParam(), 0,
               kSteps, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Rules, ParityFloat64Test,
                         testing::Values("sgd", "momentum", "nesterov",
                                         "adagrad", "rmsprop", "adam", "adamw"),
                         [](const auto& info) { return info.param; });

// Float32 against float64; two memory layouts of PyTorch itself differ by as
// much.
TEST(ParityFloat32Test, CpuAgreesWithSgd) {
  ExpectLosses(Train<float>("cpu", "sgd", kSteps), "sgd", 0, kSteps, 1e-4);
}

TEST(ParityFloat32Test, CpuAgreesWithMomentum) {
  ExpectLosses(Train<float>("cpu", "momentum", kSteps), "momentum", 0, kSteps,
               1e-3);
}

// Adam divides by the root of small numbers at first, which magnifies
// rounding.
TEST(ParityFloat32Test, CpuAgreesWithAdam) {
  const std::vector<double> losses = Train<float>("cpu", "adam", kSteps);
  ExpectLosses(losses, "adam", 0, 3, 1e-4);
  ExpectLosses(losses, "adam", 3, kSteps, 5e-2);
}

}  // namespace
}  // namespace muster
