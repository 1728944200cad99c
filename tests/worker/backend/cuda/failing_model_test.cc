// Every call of NVIDIA's libraries that training and evaluating a model makes,
// from opening the card to closing it, fails in its turn: it is told, with what
// was being done, ends no process and leaves nothing behind.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/fake_gpu.h"
#include "tests/worker/model/test_models.h"
#include "worker/backend/cuda/cuda_backend.h"
#include "worker/executor/compiled_model.h"
#include "worker/executor/device_trace.h"

namespace muster {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int64_t kRows = 2;
constexpr int64_t kClasses = 3;
constexpr int64_t kElements = 3 * 7 * 7;

// Each kind of primitive once or more.
constexpr char kEveryPrimitive[] = R"pb(
  input_shape: [ 3, 7, 7 ]
  layer {
    name: "conv"
    type: "conv2d"
    attr { name: "filters" i: 4 }
    attr { name: "kernel" i: 3 }
    attr { name: "padding" s: "same" }
    attr { name: "activation" s: "relu" }
    attr { name: "l2" f: 0.1 }
  }
  layer {
    name: "uneven"
    type: "conv2d"
    attr { name: "filters" i: 4 }
    attr { name: "kernel" i: 2 }
    attr { name: "padding" s: "same" }
  }
  layer {
    name: "narrower"
    type: "conv2d"
    attr { name: "filters" i: 4 }
    attr { name: "kernel" i: 1 }
    attr { name: "use_bias" b: false }
  }
  layer { name: "norm" type: "batch_norm" }
  layer { name: "sum" type: "add" input: "norm" input: "conv" }
  layer { name: "all" type: "concat" input: "sum" input: "norm" }
  layer { name: "max" type: "max_pool" }
  layer { name: "average" type: "average_pool" }
  layer { name: "flatten" type: "flatten" }
  layer {
    name: "hidden"
    type: "dense"
    attr { name: "units" i: 5 }
    attr { name: "activation" s: "tanh" }
  }
  layer {
    name: "narrow"
    type: "dense"
    attr { name: "units" i: 4 }
    attr { name: "activation" s: "relu" }
  }
  layer { name: "dropout" type: "dropout" }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 3 }
    attr { name: "use_bias" b: false }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

absl::Status Train(Backend* backend, const Batch& batch) {
  CompileOptions options;
  options.backend = backend;
  options.batch_size = kRows;
  ASSIGN_OR_RETURN(const auto model,
                   CompiledModel::Create(ParseModel(kEveryPrimitive), options));
  RETURN_IF_ERROR(model->InitializeParameters(1));
  // The second and the third are captured, the fourth is launched, and has a
  // trace; each but the first has its batch on the device already.
  for (uint64_t step = 1; step <= 4; ++step) {
    DeviceTrace trace;
    StepOptions with;
    with.next = {&batch, step + 1};
    if (step == 4) with.trace = &trace;
    RETURN_IF_ERROR(model->Step(batch, step, with).status());
  }
  return absl::OkStatus();
}

absl::Status Evaluate(Backend* backend, const Batch& batch) {
  CompileOptions options;
  options.backend = backend;
  options.batch_size = kRows;
  options.mode = CompileOptions::Mode::kEvaluate;
  ASSIGN_OR_RETURN(const auto model,
                   CompiledModel::Create(ParseModel(kEveryPrimitive), options));
  RETURN_IF_ERROR(model->InitializeParameters(1));
  return model->Evaluate(batch).status();
}

absl::Status UseCard(const FakeGpu& gpu, bool bf16) {
  BackendOptions options;
  options.gpu.bf16 = bf16;
  ASSIGN_OR_RETURN(
      const auto backend,
      MakeCudaFactory([&gpu](const std::string&) {
        return absl::StatusOr<const GpuFunctions*>(&gpu.functions());
      }).create(options));
  Batch batch = MakeBatch(kRows, kElements, kClasses, /*seed=*/1);
  batch.id = 1;
  RETURN_IF_ERROR(Train(backend.get(), batch));
  return Evaluate(backend.get(), batch);
}

// Called when something is given back: nobody is told.
bool IsEnd(const std::string& function) {
  return absl::StrContains(function, "Destroy") || function == "cudaFree" ||
         function == "cudaHostUnregister";
}

class FailingModelTest : public testing::TestWithParam<bool> {};

TEST_P(FailingModelTest, EachCallInTurn) {
  FakeGpu gpu;
  gpu.calls().Reset(0);
  ASSERT_THAT(UseCard(gpu, GetParam()), IsOk());
  ASSERT_EQ(gpu.Leaks(), "");
  const int64_t total = gpu.calls().calls();
  int64_t told = 0;
  for (int64_t n = 1; n <= total; ++n) {
    FakeGpu card;
    card.calls().Reset(n);
    const absl::Status status = UseCard(card, GetParam());
    const std::string failed = card.calls().failed();
    SCOPED_TRACE(testing::Message() << "call " << n << ", " << failed);
    // The one that ends a capture ends it, also if it fails; here it is not
    // made.
    if (!IsEnd(failed) && failed != "cudaStreamEndCapture") {
      EXPECT_EQ(card.Leaks(), "");
    }
    if (status.ok()) continue;
    ++told;
    EXPECT_THAT(std::string(status.message()),
                AnyOf(HasSubstr("CUDA says"), HasSubstr("cuDNN says"),
                      HasSubstr("cuBLAS says")));
  }
  // The others are only asked again, or belong to the end.
  EXPECT_GT(told, total / 2);
}

INSTANTIATE_TEST_SUITE_P(Precisions, FailingModelTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "bf16" : "tf32";
                         });

// No function is in the tables for nothing, and none escapes the test above.
TEST(FailingModelCoverageTest, EveryFunctionIsCalled) {
  FakeGpu gpu;
  ASSERT_THAT(UseCard(gpu, /*bf16=*/false), IsOk());
  ASSERT_THAT(UseCard(gpu, /*bf16=*/true), IsOk());
  const auto counts = gpu.calls().counts();
#define MUSTER_NAME(member, symbol) #symbol,
  const std::vector<std::string> all = {
      MUSTER_CUDA_FUNCTIONS(MUSTER_NAME) MUSTER_CUDNN_FUNCTIONS(MUSTER_NAME)
          MUSTER_CUBLAS_FUNCTIONS(MUSTER_NAME)};
#undef MUSTER_NAME
  for (const std::string& function : all) {
    // Words about errors, and about an allocation that failed.
    if (absl::StrContains(function, "Version") ||
        absl::StrContains(function, "String") ||
        function == "cudaGetLastError" || function == "cudaMemGetInfo") {
      continue;
    }
    EXPECT_TRUE(counts.contains(function)) << function;
  }
}

}  // namespace
}  // namespace muster
