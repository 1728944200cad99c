#include "ps_server/sync/replication_policy.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Remembers the steps of the parts that it was told to apply.
class FakeApplier : public PartApplier {
 public:
  void Apply(const PushedPart& part) override { steps.push_back(part.step); }
  std::vector<int64_t> steps;
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
