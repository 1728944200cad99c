#include "tests/worker/executor/trainee.h"

#include <utility>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

constexpr float kLearningRate = 0.05f;

}  // namespace

void Update(CompiledModel* model) {
  for (int i = 0; i < static_cast<int>(model->parameters().size()); ++i) {
    const TensorDef& definition = model->parameters()[i];
    const absl::Span<float> values = model->parameter(i);
    for (size_t k = 0; k < values.size(); ++k) {
      const float gradient = model->gradient(i)[k];
      values[k] += definition.kind() == STATE
                       ? gradient - definition.decay() * values[k]
                       : -kLearningRate * gradient;
    }
  }
}

Trainee::Trainee(std::unique_ptr<Backend> backend, const ModelSpec& spec,
                 bool use_graphs, DeviceMean* mean)
    : backend_(std::move(backend)) {
  CompileOptions options;
  options.backend = backend_.get();
  options.batch_size = kRows;
  options.use_graphs = use_graphs;
  options.mean = mean;
  options.reporter = said_.reporter();
  model_ = Compile(spec, options);
  EXPECT_THAT(model_->InitializeParameters(1), IsOk());
}

absl::StatusOr<CompiledModel::StepResult> Trainee::Train(const Batch& batch,
                                                         uint64_t seed,
                                                         StepListener* listener,
                                                         ParameterGate* gate,
                                                         SeededBatch next) {
  auto result = model_->Step(batch, seed, {listener, gate, next});
  if (result.ok()) Update(model_.get());
  return result;
}

void ExpectSameGradients(CompiledModel& found, CompiledModel& wanted) {
  for (int i = 0; i < static_cast<int>(wanted.parameters().size()); ++i) {
    ASSERT_TRUE(found.gradient(i) == wanted.gradient(i))
        << wanted.parameters()[i].name();
  }
}

ModelSpec WideModel() {
  std::string text = absl::StrReplaceAll(
      kManyUsesModel, {{"\"filters\" i: 4", "\"filters\" i: 64"},
                       {"\"units\" i: 16", "\"units\" i: 256"}});
  const std::string flatten = "layer { name: \"flatten\" type: \"flatten\" }";
  const size_t place = text.find(flatten);
  EXPECT_NE(place, std::string::npos);
  text.insert(place + flatten.size(),
              "layer { name: 'drop1' type: 'dropout' } "
              "layer { name: 'drop2' type: 'dropout' } ");
  return ParseModel(text);
}

std::unique_ptr<FakeDevice> MakeDevice(const std::string& inner,
                                       uint64_t seed) {
  return std::make_unique<FakeDevice>(MakeBackend(inner), seed);
}

}  // namespace muster
