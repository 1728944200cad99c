#include "worker/round_holder.h"

#include <gtest/gtest.h>

#include "tests/testing/fake_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/round_coordination.h"

namespace muster {
namespace {

class RoundHolderTest : public ::testing::Test {
 protected:
  static Sender Chief() {
    Sender sender;
    sender.set_incarnation(5);
    return sender;
  }

  FakeClock clock_;
  RoundCoordination coordination_{/*round=*/8};
  RoundHolder holder_{&clock_, &coordination_, Chief()};
};

TEST_F(RoundHolderTest, HoldsUntilItReleases) {
  holder_.Enter(3);
  const auto held = holder_.Hold();
  ASSERT_THAT(held, IsOk());
  EXPECT_EQ(held->token().round(), 8);
  EXPECT_EQ(held->state().global_step(), 7);
  EXPECT_TRUE(coordination_.held);
  EXPECT_EQ(coordination_.last.model_epoch(), 3);
  EXPECT_EQ(coordination_.last.sender().incarnation(), 5);
  holder_.Release();
  EXPECT_FALSE(coordination_.held);
  EXPECT_EQ(coordination_.last.model_epoch(), 3);
}

TEST_F(RoundHolderTest, ReleasesAfterAnAnswerThatWasLost) {
  coordination_.failure = absl::DeadlineExceededError("lost");
  EXPECT_THAT(holder_.Hold(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                       testing::HasSubstr("hold rounds")));
  EXPECT_FALSE(coordination_.held);
  EXPECT_EQ(coordination_.releases, 1);
}

TEST_F(RoundHolderTest, RefusesAStateOfAnotherRound) {
  coordination_.state_ahead = 1;
  EXPECT_THAT(holder_.Hold(), StatusIs(absl::StatusCode::kInternal));
  EXPECT_FALSE(coordination_.held);
}

}  // namespace
}  // namespace muster
