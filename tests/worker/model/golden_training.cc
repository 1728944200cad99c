#include "tests/worker/model/golden_training.h"

#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

constexpr int kRows = 4;
constexpr int kBatches = 4;
constexpr int64_t kExampleElements = 28 * 28;
constexpr int64_t kResnetExampleElements = 32 * 32;
constexpr int kClasses = 10;
constexpr uint64_t kExamplesStream = 100;
constexpr uint64_t kLabelsStream = 200;
// One a parameter: the amplitude of its first values is 2^-exponent.
constexpr int kExponents[] = {3, 6, 4, 6, 5, 6, 4, 6};

// generate.py's Uniform: element i of a stream, in [0, 2^24).
int64_t Uniform(uint64_t stream, uint64_t i) {
  uint64_t z = ((stream << 32) + i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return static_cast<int64_t>((z ^ (z >> 31)) >> 40);
}

Batch GoldenBatch(int index, int64_t example_elements) {
  Batch batch = MakeLabelledBatch(kRows, Shape({example_elements}));
  batch.rows = kRows;
  for (int64_t i = 0; i < kRows * example_elements; ++i) {
    batch.input()[i] = std::ldexp(
        static_cast<float>(Uniform(kExamplesStream + index, i)), -24);
  }
  for (int64_t i = 0; i < kRows; ++i) {
    batch.labels()[i] =
        static_cast<int32_t>(Uniform(kLabelsStream + index, i) % kClasses);
  }
  return batch;
}

OptimizerSpec RuleSpec(const std::string& rule) {
  static const std::map<std::string, std::string> kSettings = {
      {"sgd", "name: 'sgd' attr { name: 'learning_rate' f: 0.05 }"},
      {"momentum",
       "name: 'momentum' attr { name: 'learning_rate' f: 0.02 } "
       "attr { name: 'momentum' f: 0.9 }"},
      {"slow_momentum",
       "name: 'momentum' attr { name: 'learning_rate' f: 0.001 } "
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

// An amplitude of 2^-exponent.
template <typename T>
void FillUniform(uint64_t stream, int exponent, absl::Span<T> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(static_cast<T>(Uniform(stream, i) - (1 << 23)),
                           -(23 + exponent));
  }
}

template <typename T>
void SetFirstValues(CompiledModel* model) {
  for (size_t p = 0; p < model->parameters().size(); ++p) {
    FillUniform(p, kExponents[p], model->template parameter_as<T>(p));
  }
}

// Weights by generate_resnet20.py's formula; others stay as they are.
template <typename T>
void SetResnetWeights(CompiledModel* model) {
  uint64_t stream = 0;
  for (size_t p = 0; p < model->parameters().size(); ++p) {
    const auto& shape = model->parameters()[p].shape();
    if (shape.size() < 2) continue;
    int64_t fan_in = 1;
    for (int d = 1; d < shape.size(); ++d) fan_in *= shape[d];
    const int exponent = std::ilogb(static_cast<double>(fan_in)) / 2 - 1;
    FillUniform(stream++, exponent, model->template parameter_as<T>(p));
  }
}

// The losses in golden/FILE of the lines that begin with `wanted`.
std::vector<double> ReadLosses(const std::string& file_name,
                               const std::string& wanted) {
  std::ifstream file("tests/worker/model/golden/" + file_name);
  EXPECT_TRUE(file.good());
  std::vector<double> losses;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string name;
    size_t step = 0;
    double loss = 0;
    fields >> name >> step >> loss;
    if (name != wanted) continue;
    EXPECT_EQ(step, losses.size());
    losses.push_back(loss);
  }
  EXPECT_EQ(losses.size(), kGoldenSteps);
  return losses;
}

std::unique_ptr<CompiledModel> CompileZooModel(const std::string& name,
                                               Backend* backend) {
  CompileOptions options;
  options.backend = backend;
  options.batch_size = kRows;
  return Compile(LoadZooModel(name).model(), options);
}

// The loss of each step; moving averages are left alone: training reads none.
template <typename T>
std::vector<double> Train(CompiledModel* model, int64_t example_elements,
                          const std::string& rule_name, int steps) {
  auto rule = CreateReferenceRule<T>(RuleSpec(rule_name));
  EXPECT_TRUE(rule.ok()) << rule.status();
  std::vector<Slots<T>> slots;
  for (size_t p = 0; p < model->parameters().size(); ++p) {
    slots.emplace_back(**rule, model->template parameter_as<T>(p).size());
  }
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const auto result =
        model->Step(GoldenBatch(step % kBatches, example_elements), 0);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) break;
    losses.push_back(result->loss);
    for (size_t p = 0; p < slots.size(); ++p) {
      if (model->parameters()[p].kind() == STATE) continue;
      absl::Span<T> values = model->template parameter_as<T>(p);
      (*rule)->Apply({step + 1}, model->template gradient_as<T>(p).data(),
                     values.data(), slots[p].pointers(), values.size());
    }
  }
  return losses;
}

}  // namespace

std::vector<double> GoldenLosses(const std::string& rule) {
  return ReadLosses("losses.txt", rule);
}

int ComparedSteps(const std::string& rule) {
  return rule == "momentum" ? kGoldenSteps : 6;
}

template <typename T>
std::vector<double> TrainGolden(Backend* backend, const std::string& rule_name,
                                int steps) {
  const auto model = CompileZooModel("mnist_cnn", backend);
  SetFirstValues<T>(model.get());
  return Train<T>(model.get(), kExampleElements, rule_name, steps);
}

std::vector<double> GoldenResnetLosses() {
  return ReadLosses("resnet20_losses.txt", "resnet20");
}

template <typename T>
std::vector<double> TrainGoldenResnet(Backend* backend, int steps) {
  const auto model = CompileZooModel("resnet20", backend);
  EXPECT_TRUE(model->InitializeParameters(1).ok());
  SetResnetWeights<T>(model.get());
  return Train<T>(model.get(), kResnetExampleElements, "slow_momentum", steps);
}

template std::vector<double> TrainGoldenResnet<float>(Backend*, int);
template std::vector<double> TrainGoldenResnet<double>(Backend*, int);
template std::vector<double> TrainGolden<float>(Backend*, const std::string&,
                                                int);
template std::vector<double> TrainGolden<double>(Backend*, const std::string&,
                                                 int);

}  // namespace muster
