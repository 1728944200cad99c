#include "ps_server/shard/replication_policy.h"

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
  bool Apply(const PushedPart& part) override {
    steps.push_back(part.step);
    rate_factors.push_back(part.rate_factor);
    return part.publish_to != nullptr;
  }
  void ApplyToBlocks(absl::Span<const CheckedSlice> /*slices*/,
                     double /*rate_factor*/,
                     BlockGradient /*gradient*/) override {
    ADD_FAILURE() << "a mean in a mode that has none";
  }
  void ApplyRows(const CheckedRows&, double) override { ADD_FAILURE(); }
  void CountUpdate() override { ++updates; }
  std::vector<int64_t> steps;
  std::vector<double> rate_factors;
  int updates = 0;
};

constexpr int64_t kMaxGradientBytes = 1000;

TEST(ReplicationPolicyTest, AsyncIsTheDefaultAndAppliesAtOnce) {
  ReplicationSpec spec;
  for (const bool named : {false, true}) {
    if (named) spec.mutable_async();
    const auto policy = CreateReplicationPolicy(spec, kMaxGradientBytes);
    ASSERT_THAT(policy, IsOk());
    EXPECT_EQ((*policy)->name(), "async");
    FakeApplier applier;
    for (const int64_t step : {3, 4}) {
      PushedPart part;
      part.step = step;
      (*policy)->OnPart(part, TensorTable(), applier);
    }
    EXPECT_THAT(applier.steps, ElementsAre(3, 4));
  }
}

std::vector<double> RateFactors(const ReplicationSpec& spec,
                                double own_factor = 1) {
  const auto policy = CreateReplicationPolicy(spec, kMaxGradientBytes);
  EXPECT_THAT(policy, IsOk());
  FakeApplier applier;
  for (const int64_t staleness : {0, 1, 2, 8}) {
    PushedPart part;
    part.staleness = staleness;
    part.rate_factor = own_factor;
    (*policy)->OnPart(part, TensorTable(), applier);
  }
  return applier.rate_factors;
}

TEST(ReplicationPolicyTest, AsyncDividesTheLearningRateByStalenessIfAsked) {
  ReplicationSpec spec;
  spec.mutable_async();
  EXPECT_THAT(RateFactors(spec), ElementsAre(1, 1, 1, 1));
  spec.mutable_async()->set_staleness_scaled_learning_rate(true);
  EXPECT_THAT(RateFactors(spec), ElementsAre(1, 1, 0.5, 0.125));
  EXPECT_THAT(RateFactors(spec, 0.5), ElementsAre(0.5, 0.5, 0.25, 0.0625));
}

TEST(ReplicationPolicyTest, AStepIsOneUpdateHoweverManyPartsItHas) {
  const auto policy =
      CreateReplicationPolicy(ReplicationSpec(), kMaxGradientBytes);
  ASSERT_THAT(policy, IsOk());
  FakeApplier applier;
  for (const int32_t number : {2, 0, 1}) {
    PushedPart part;
    part.part = number;
    part.begins_step = number == 2;
    (*policy)->OnPart(part, TensorTable(), applier);
  }
  EXPECT_EQ(applier.updates, 1);
}

TEST(ReplicationPolicyTest, EachModeHasItsPolicy) {
  ReplicationSpec spec;
  spec.mutable_sync();
  EXPECT_EQ((*CreateReplicationPolicy(spec, kMaxGradientBytes))->name(),
            "sync");
  spec.mutable_bounded_staleness();
  EXPECT_EQ((*CreateReplicationPolicy(spec, kMaxGradientBytes))->name(),
            "bounded_staleness");
}

TEST(ReplicationPolicyTest, AllReduceIsSaidAsSync) {
  ReplicationSpec spec;
  spec.mutable_all_reduce();
  EXPECT_THAT(CreateReplicationPolicy(spec, kMaxGradientBytes),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("all_reduce, which is sync {} to a shard")));
}

TEST(ReplicationPolicyTest, ModesWithoutRoundsRefuseThem) {
  ReplicationSpec spec;
  for (const bool bounded : {false, true}) {
    if (bounded) spec.mutable_bounded_staleness();
    const auto policy = CreateReplicationPolicy(spec, kMaxGradientBytes);
    ASSERT_THAT(policy, IsOk());
    const TensorTable none;
    FakeApplier applier;
    PushedPart part;
    EXPECT_THAT((*policy)->CheckPart("push", part, none), IsOk());
    part.round = 3;
    const auto refused =
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("round 3"));
    EXPECT_THAT((*policy)->CheckPart("push", part, none), refused);
    StepToken token;
    EXPECT_THAT((*policy)->OnToken("pull", token, none, applier), IsOk());
    EXPECT_THAT((*policy)->OnCut("cut", token, none, applier), IsOk());
    token.set_round(3);
    EXPECT_THAT((*policy)->OnToken("pull", token, none, applier), refused);
    EXPECT_THAT((*policy)->OnCut("cut", token, none, applier), refused);
  }
}

}  // namespace
}  // namespace muster
