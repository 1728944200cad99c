// Linked statically, as the worker is: a backend whose registrar the linker
// dropped is missing here.
#include <cmath>
#include <functional>
#include <string>
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
