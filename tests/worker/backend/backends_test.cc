// Linked statically, as the worker is: a backend whose registrar the linker
// dropped is missing here.
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
    if (factory->devices().empty()) continue;  // no such device here
    const auto backend = CreateBackend(name, {});
    ASSERT_THAT(backend, IsOk());
    EXPECT_EQ((*backend)->name(), name);
    EXPECT_FALSE(factory->devices()[0].description.empty());
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

}  // namespace
}  // namespace muster
