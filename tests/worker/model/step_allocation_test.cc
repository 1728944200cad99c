// A step allocates nothing after the first ones.
#include <memory>
#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "tests/worker/model/allocation_counter.h"
#include "tests/worker/model/test_models.h"
#include "worker/model/parameter_gate.h"
#include "worker/model/step_listener.h"

namespace muster {
namespace {

constexpr int64_t kRows = 4;

class OpenGate : public ParameterGate {
 public:
  absl::Status BeforeUse(int /*parameter*/) override {
    return absl::OkStatus();
  }
};

// Counts what it hears.
class CountingListener : public StepListener {
 public:
  absl::Status OnForward(double /*loss*/) override {
    ++heard_;
    return absl::OkStatus();
  }
  void OnGradient(int /*parameter*/) override { ++heard_; }
  size_t heard() const { return heard_; }

 private:
  size_t heard_ = 0;
};

class StepAllocationTest
    : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

// On a device the second one is captured as a graph.
TEST_P(StepAllocationTest, AllocatesNothingAfterTheFirstSteps) {
  if (!CanCountAllocations()) GTEST_SKIP() << "a sanitizer has malloc";
  const auto& [backend_name, model_name] = GetParam();
  const std::unique_ptr<Backend> backend = MakeBackend(backend_name);
  CompileOptions options;
  options.backend = backend.get();
  options.batch_size = kRows;
  const auto model = Compile(LoadZooModel(model_name).model(), options);
  ASSERT_TRUE(model->InitializeParameters(1).ok());
  const Batch batch = MakeBatch(kRows, 28 * 28, 10, 1);
  ASSERT_TRUE(model->Step(batch, 1).ok());
  if (backend->streams() != nullptr) {
    ASSERT_TRUE(model->Step(batch, 1).ok());
  }
  CountingListener listener;
  OpenGate gate;
  StartCountingAllocations();
  const bool ok = model->Step(batch, 2).ok() &&
                  model->Step(batch, 3, &listener, &gate).ok();
  const int allocations = StopCountingAllocations();
  EXPECT_TRUE(ok);
  EXPECT_EQ(listener.heard(), model->parameters().size() + 1);
  EXPECT_EQ(allocations, 0) << LargestAllocation();
}

TEST(AllocationCounterTest, SeesAllocations) {
  if (!CanCountAllocations()) GTEST_SKIP() << "a sanitizer has malloc";
  StartCountingAllocations();
  const auto vector = std::make_unique<std::string>(100, 'x');
  EXPECT_GE(StopCountingAllocations(), 2) << *vector;
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, StepAllocationTest,
    testing::Combine(testing::Values("ref", "cpu", "device_of_ref",
                                     "device_of_cpu"),
                     testing::Values("mnist_cnn", "mlp", "inception_small")),
    [](const auto& info) {
      return std::get<0>(info.param) + "_" + std::get<1>(info.param);
    });

}  // namespace
}  // namespace muster
