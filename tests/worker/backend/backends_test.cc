// Linked statically, as the worker is: a backend whose registrar the linker
// dropped is missing here.
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/backend/backend.h"

namespace muster {
namespace {

TEST(BackendsTest, EveryBackendIsRegistered) {
  EXPECT_THAT(BackendRegistry::Names(),
              testing::IsSupersetOf({"cpu", "ref", "ref_float64"}));
  EXPECT_THAT(BackendRegistry::Validate(), IsOk());
}

TEST(BackendsTest, EveryRegisteredBackendCanBeMade) {
  for (const std::string& name : BackendRegistry::Names()) {
    const auto factory = BackendRegistry::Find(name);
    ASSERT_THAT(factory, IsOk());
    const std::vector<Device> devices = factory->devices({});
    ASSERT_FALSE(devices.empty());
    if (!devices[0].unusable.empty()) continue;  // no such device here
    const auto backend = CreateBackend(name, {});
    ASSERT_THAT(backend, IsOk());
    EXPECT_EQ((*backend)->name(), name);
    EXPECT_FALSE(devices[0].description.empty());
  }
}

// A valid description of each operation, and the layouts that it follows.
std::vector<std::pair<Operation, LayoutShapes>> EveryOperation() {
  const Shape shape = {2, 3}, image = {1, 1, 1, 1};
  return {{Conv2dDesc(), {}},
          {DenseDesc(), {}},
          {ActivationDesc(), {shape}},
          {PoolDesc(), {image}},
          {DropoutDesc{0.5, shape}, {shape}},
          {BatchNormDesc(), {image}},
          {LayerNormDesc{2, 3}, {shape}},
          {AddDesc{2, shape}, {shape, shape}},
          {ConcatDesc{{shape, shape}}, {shape, shape}},
          {SoftmaxCrossEntropyDesc(), {}},
          {TargetLossDesc(), {}},
          {L2PenaltyDesc{0.1, shape}, {shape}},
          {ReorderDesc{shape}, {shape, shape}}};
}

std::vector<MemoryLayout> RowMajor(const LayoutShapes& shapes, DataType dtype) {
  std::vector<MemoryLayout> layouts;
  for (const std::optional<Shape>& shape : shapes) {
    layouts.push_back(MemoryLayout::RowMajor(dtype, *shape));
  }
  return layouts;
}

TEST(BackendsTest, CreatesEveryPassOfEveryOperationAndRefusesTheOthers) {
  ASSERT_EQ(EveryOperation().size(), std::variant_size_v<Operation>);
  const std::map<Gradient, std::set<Pass>> passes = {
      {Gradient::kNone, {Pass::kForward}},
      {Gradient::kWhole, {Pass::kForward, Pass::kBackward}},
      {Gradient::kByPart,
       {Pass::kForward, Pass::kBackwardData, Pass::kBackwardWeights}}};
  for (const std::string name : {"cpu", "ref", "ref_float64"}) {
    const auto backend = CreateBackend(name, {});
    ASSERT_THAT(backend, IsOk());
    for (const auto& [operation, shapes] : EveryOperation()) {
      const auto layouts = RowMajor(shapes, (*backend)->dtype());
      const Gradient gradient = std::visit(
          [](const auto& desc) { return desc.kGradient; }, operation);
      for (const Pass pass : {Pass::kForward, Pass::kBackward,
                              Pass::kBackwardData, Pass::kBackwardWeights}) {
        SCOPED_TRACE(name + " " + PrimitiveName(operation, pass));
        EXPECT_THAT((*backend)->Create(operation, pass, layouts),
                    StatusIs(passes.at(gradient).count(pass) > 0
                                 ? absl::StatusCode::kOk
                                 : absl::StatusCode::kUnimplemented));
      }
    }
  }
}

TEST(BackendsTest, APrimitiveThatIsMissingIsNamedWithItsBackend) {
  const auto backend = CreateBackend("ref", {});
  ASSERT_THAT(backend, IsOk());
  EXPECT_THAT(
      (*backend)->Create(Conv2dDesc(), Pass::kBackward, {}),
      StatusIs(absl::StatusCode::kUnimplemented,
               testing::AllOf(testing::HasSubstr("conv2d backward is not"),
                              testing::HasSubstr("'ref'"))));
}

TEST(BackendsTest, OtherLayoutsThanAnOperationFollowsAreRefused) {
  const auto backend = CreateBackend("ref", {});
  ASSERT_THAT(backend, IsOk());
  EXPECT_THAT((*backend)->Create(ActivationDesc(), Pass::kForward, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("wanted 1 layouts, found 0")));
  const MemoryLayout two = MemoryLayout::RowMajor(FLOAT32, {2});
  const MemoryLayout three = MemoryLayout::RowMajor(FLOAT32, {3});
  EXPECT_THAT(
      (*backend)->Create(ReorderDesc{{2}}, Pass::kForward, {two, three}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               testing::HasSubstr("reorder: wanted a layout")));
}

TEST(BackendsTest, UnknownNameIsAnsweredWithTheNearest) {
  const auto backend = CreateBackend("cpv", {});
  EXPECT_THAT(backend, StatusIs(absl::StatusCode::kNotFound,
                                testing::HasSubstr("'cpu'")));
}

TEST(BackendsTest, ThreadsOutOfRangeAreRefused) {
  for (const int threads : {-1, 0, 100000}) {
    BackendOptions options;
    options.compute_threads = threads;
    EXPECT_THAT(CreateBackend("cpu", options),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(BackendsTest, GpuOptionsOutOfRangeAreRefusedByFlag) {
  struct Case {
    std::function<void(GpuOptions*)> set;
    std::string flag;
  };
  const Case cases[] = {
      {[](GpuOptions* gpu) { gpu->memory_fraction = 0; }, "memory_fraction=0"},
      {[](GpuOptions* gpu) { gpu->memory_fraction = 1.1; },
       "memory_fraction=1.1"},
      {[](GpuOptions* gpu) { gpu->memory_fraction = std::nan(""); },
       "memory_fraction=nan"},
      {[](GpuOptions* gpu) { gpu->memory_limit_bytes = -(1 << 20); },
       "memory_limit_mb: wanted 0 (no limit) or more, found -1"},
      {[](GpuOptions* gpu) { gpu->virtual_devices = 0; }, "virtual_devices=0"},
      {[](GpuOptions* gpu) { gpu->virtual_devices = 65; },
       "virtual_devices=65"},
  };
  EXPECT_THAT(CheckGpuOptions({}), IsOk());
  for (const Case& test : cases) {
    BackendOptions options;
    test.set(&options.gpu);
    EXPECT_THAT(CreateBackend("cpu", options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::HasSubstr("--gpu_" + test.flag)));
  }
}

TEST(BackendsTest, Bf16IsRefusedByBackendsThatHaveNone) {
  BackendOptions options;
  options.gpu.bf16 = true;
  for (const std::string name : {"cpu", "ref", "ref_float64"}) {
    EXPECT_THAT(CreateBackend(name, options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::AllOf(testing::HasSubstr("compute.bf16"),
                                        testing::HasSubstr(name))));
  }
}

}  // namespace
}  // namespace muster
