#include "ps_server/sync/replication_policy.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Remembers the parts that it was told to apply.
class FakeApplier : public PartApplier {
 public:
  void Apply(const PushedPart& part) override {
    steps.push_back(part.step);
    rate_factors.push_back(part.rate_factor);
  }
  std::vector<int64_t> steps;
  std::vector<double> rate_factors;
};

TEST(ReplicationPolicyTest, AsyncIsTheDefaultAndAppliesAtOnce) {
  ReplicationSpec spec;
  for (const bool named : {false, true}) {
    if (named) spec.mutable_async();
    const auto policy = CreateReplicationPolicy(spec);
    ASSERT_THAT(policy, IsOk());
    EXPECT_EQ((*policy)->name(), "async");
    FakeApplier applier;
    for (const int64_t step : {3, 4}) {
      PushedPart part;
      part.step = step;
      (*policy)->OnPart(part, applier);
    }
    EXPECT_THAT(applier.steps, ElementsAre(3, 4));
  }
}

std::vector<double> RateFactors(const ReplicationSpec& spec) {
  const auto policy = CreateReplicationPolicy(spec);
  EXPECT_THAT(policy, IsOk());
  FakeApplier applier;
  for (const int64_t staleness : {0, 1, 2, 8}) {
    PushedPart part;
    part.staleness = staleness;
    (*policy)->OnPart(part, applier);
  }
  return applier.rate_factors;
}

TEST(ReplicationPolicyTest, AsyncDividesTheLearningRateByStalenessIfAsked) {
  ReplicationSpec spec;
  spec.mutable_async();
  EXPECT_THAT(RateFactors(spec), ElementsAre(1, 1, 1, 1));
  spec.mutable_async()->set_staleness_scaled_learning_rate(true);
  EXPECT_THAT(RateFactors(spec), ElementsAre(1, 1, 0.5, 0.125));
}

TEST(ReplicationPolicyTest, OtherModesAreRefusedByName) {
  ReplicationSpec spec;
  spec.mutable_sync();
  EXPECT_THAT(CreateReplicationPolicy(spec),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("sync")));
  spec.mutable_bounded_staleness();
  EXPECT_THAT(CreateReplicationPolicy(spec),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("bounded_staleness")));
}

}  // namespace
}  // namespace muster
