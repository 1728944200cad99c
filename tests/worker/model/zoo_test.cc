// Every model of the zoo parses, has the parameters that it says, compiles in
// both modes on both backends and trains.
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"
#include "worker/model/model_graph.h"

namespace muster {
namespace {

constexpr int64_t kRows = 4;

struct ZooModel {
  const char* name;
  // Elements of trainable and of state parameters.
  int64_t trainable;
  int64_t state;
};

constexpr ZooModel kZoo[] = {
    {"mnist_cnn", 3274634, 0},  {"softmax_regression", 7850, 0},
    {"mlp", 235146, 0},         {"inception_small", 49666, 760},
    {"resnet20", 272186, 1568}, {"linear_regression", 11, 0},
};

int64_t InputElements(const TrainingSpec& spec) {
  return absl::c_accumulate(spec.model().input_shape(), int64_t{1},
                            std::multiplies<int64_t>());
}

Batch BatchFor(const TrainingSpec& spec, const CompiledModel& model,
               int64_t rows) {
  const int64_t elements = InputElements(spec);
  return model.loss().reads_targets
             ? MakeTargetBatch(rows, elements, model.num_outputs(), 1)
             : MakeBatch(rows, elements, model.num_outputs(), 1);
}

TEST(ZooTest, ModelsHaveTheirParameters) {
  for (const ZooModel& model : kZoo) {
    const TrainingSpec spec = LoadZooModel(model.name);
    EXPECT_EQ(spec.model().name(), model.name);
    const auto graph = ModelGraph::Create(spec.model());
    ASSERT_THAT(graph, IsOk()) << model.name;
    int64_t elements[2] = {0, 0};
    for (const ModelGraph::Parameter& parameter : graph->parameters()) {
      elements[parameter.kind == STATE] += parameter.shape.num_elements();
    }
    EXPECT_EQ(elements[0], model.trainable) << model.name;
    EXPECT_EQ(elements[1], model.state) << model.name;
  }
}

class ZooTrainingTest
    : public testing::TestWithParam<std::tuple<ZooModel, std::string>> {};

// Plain gradient descent on one batch must lower its loss.
TEST_P(ZooTrainingTest, LearnsOneBatch) {
  const auto& [zoo_model, backend_name] = GetParam();
  const std::unique_ptr<Backend> backend = MakeBackend(backend_name);
  CompileOptions options;
  options.backend = backend.get();
  options.batch_size = kRows;
  const TrainingSpec spec = LoadZooModel(zoo_model.name);
  const auto model = Compile(spec.model(), options);
  ASSERT_THAT(model->InitializeParameters(1), IsOk());
  const Batch batch = BatchFor(spec, *model, kRows);
  constexpr float kLearningRate = 0.01f;
  constexpr int kSteps = 8;
  double first = 0;
  double last = 0;
  for (int step = 0; step < kSteps; ++step) {
    const auto result = model->Step(batch, 1);
    ASSERT_THAT(result, IsOk());
    (step == 0 ? first : last) = result->loss;
    for (size_t i = 0; i < model->parameters().size(); ++i) {
      // Training reads no moving averages.
      if (model->parameters()[i].kind() == STATE) continue;
      // Millions of values, in code that is not optimised.
      float* const parameter = model->parameter(i).data();
      const float* const gradient = model->gradient(i).data();
      const int64_t elements = model->parameter(i).size();
      for (int64_t j = 0; j < elements; ++j) {
        parameter[j] -= kLearningRate * gradient[j];
      }
    }
  }
  EXPECT_TRUE(std::isfinite(last));
  EXPECT_LT(last, 0.95 * first);
}

// ref would take a minute for resnet20.
std::vector<std::tuple<ZooModel, std::string>> ModelsAndBackends() {
  std::vector<std::tuple<ZooModel, std::string>> all;
  for (const ZooModel& model : kZoo) {
    all.emplace_back(model, "cpu");
    if (std::string(model.name) != "resnet20") all.emplace_back(model, "ref");
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooTrainingTest,
                         testing::ValuesIn(ModelsAndBackends()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  "_" + std::get<1>(info.param);
                         });

TEST(ZooTest, ModelsCompileForEvaluation) {
  const std::unique_ptr<Backend> backend = MakeBackend("cpu");
  for (const ZooModel& zoo_model : kZoo) {
    CompileOptions options;
    options.backend = backend.get();
    options.batch_size = kRows;
    options.mode = CompileOptions::Mode::kEvaluate;
    const TrainingSpec spec = LoadZooModel(zoo_model.name);
    const auto model = Compile(spec.model(), options);
    ASSERT_THAT(model->InitializeParameters(1), IsOk());
    EXPECT_THAT(model->Evaluate(BatchFor(spec, *model, 2)), IsOk());
  }
}

}  // namespace
}  // namespace muster
