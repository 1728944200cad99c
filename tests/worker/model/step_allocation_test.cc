// A step allocates nothing after the first ones: our code nothing on the host,
// and nobody anything by a device's libraries.
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/worker/backend/parity_backends.h"
#include "tests/worker/model/allocation_counter.h"
#include "tests/worker/model/test_models.h"
#include "worker/executor/device_trace.h"
#include "worker/executor/parameter_gate.h"
#include "worker/executor/step_listener.h"

namespace muster {
namespace {

constexpr int64_t kRows = 2;

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

using Case = std::tuple<ParityBackend, std::string>;

class StepAllocationTest : public testing::TestWithParam<Case> {
 public:
  static std::string NameOf(const testing::TestParamInfo<Case>& info) {
    return absl::StrCat(std::get<0>(info.param).label, "_",
                        std::get<1>(info.param));
  }

 protected:
  void SetUp() override {
    if (!CanCountAllocations()) GTEST_SKIP() << "a sanitizer has malloc";
    auto made = std::get<0>(GetParam()).make();
    if (absl::IsUnavailable(made.status())) GTEST_SKIP() << made.status();
    ASSERT_TRUE(made.ok()) << made.status();
    backend_ = *std::move(made);
  }

  int64_t CallsThatMake() const {
    const auto& calls = std::get<0>(GetParam()).calls_that_make;
    return calls == nullptr ? 0 : calls();
  }

  void ExpectNoAllocations(bool use_graphs) {
    CompileOptions options;
    options.backend = backend_.get();
    options.batch_size = kRows;
    options.use_graphs = use_graphs;
    const auto model =
        Compile(LoadZooModel(std::get<1>(GetParam())).model(), options);
    ASSERT_TRUE(model->InitializeParameters(1).ok());
    const Batch batch = MakeBatch(kRows, 28 * 28, 10, 1);
    ASSERT_TRUE(model->Step(batch, 1).ok());
    // Captured as graphs, for both of the places that a batch goes to.
    for (int step = 0; use_graphs && step < 2; ++step) {
      ASSERT_TRUE(model->Step(batch, 1).ok());
    }
    // Leaves nothing to the steps after it.
    DeviceTrace trace;
    ASSERT_TRUE(model->Step(batch, 1, {nullptr, nullptr, {}, &trace}).ok());
    EXPECT_EQ(trace.spans.empty(), backend_->streams() == nullptr);
    CountingListener listener;
    OpenGate gate;
    const int64_t calls = CallsThatMake();
    StartCountingAllocations();
    const bool ok =
        model->Step(batch, 2).ok() &&
        model->Step(batch, 3, {&listener, &gate, {&batch, /*seed=*/4}}).ok();
    const int allocations = StopCountingAllocations();
    EXPECT_TRUE(ok);
    EXPECT_EQ(listener.heard(), model->parameters().size() + 1);
    EXPECT_EQ(allocations, 0) << LargestAllocation();
    EXPECT_EQ(CallsThatMake(), calls);
  }

  std::unique_ptr<Backend> backend_;
};

TEST_P(StepAllocationTest, AllocatesNothingAfterTheFirstSteps) {
  ExpectNoAllocations(/*use_graphs=*/false);
  if (backend_->streams() == nullptr) return;
  SCOPED_TRACE("with graphs");
  ExpectNoAllocations(/*use_graphs=*/true);
}

class StepAllocationOfLanesTest : public testing::TestWithParam<std::string> {};

TEST_P(StepAllocationOfLanesTest, AllocatesNothingAfterTheFirstSteps) {
  if (!CanCountAllocations()) GTEST_SKIP() << "a sanitizer has malloc";
  const auto first = MakeBackend("cpu");
  const auto second = MakeBackend(GetParam());
  CompileOptions options;
  options.backend = first.get();
  options.more_backends = {second.get()};
  options.batch_size = kRows;
  options.device_of = [](absl::string_view layer, int /*part*/) {
    return layer == "conv2" || layer == "logits" ? 1 : 0;
  };
  const auto model = Compile(LoadZooModel("mnist_cnn").model(), options);
  ASSERT_TRUE(model->InitializeParameters(1).ok());
  const Batch batch = MakeBatch(kRows, 28 * 28, 10, 1);
  ASSERT_TRUE(model->Step(batch, 1).ok());
  CountingListener listener;
  OpenGate gate;
  StartCountingAllocations();
  const bool ok = model->Step(batch, 2, {&listener, &gate}).ok();
  const int allocations = StopCountingAllocations();
  EXPECT_TRUE(ok);
  EXPECT_EQ(listener.heard(), model->parameters().size() + 1);
  EXPECT_EQ(allocations, 0) << LargestAllocation();
}

INSTANTIATE_TEST_SUITE_P(Seconds, StepAllocationOfLanesTest,
                         testing::Values("cpu", "device_of_cpu"),
                         [](const auto& info) { return info.param; });

TEST(AllocationCounterTest, SeesAllocations) {
  if (!CanCountAllocations()) GTEST_SKIP() << "a sanitizer has malloc";
  StartCountingAllocations();
  const auto vector = std::make_unique<std::string>(100, 'x');
  EXPECT_GE(StopCountingAllocations(), 2) << *vector;
}

INSTANTIATE_TEST_SUITE_P(Zoo, StepAllocationTest,
                         testing::Combine(testing::ValuesIn(ParityBackends()),
                                          testing::Values("mnist_cnn", "mlp",
                                                          "inception_small")),
                         StepAllocationTest::NameOf);

}  // namespace
}  // namespace muster
