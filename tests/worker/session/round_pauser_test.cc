#include "worker/session/round_pauser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/testing/fake_clock.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/session/round_coordination.h"

namespace muster {
namespace {

class RoundPauserTest : public ::testing::Test {
 protected:
  static Sender Chief() {
    Sender sender;
    sender.set_incarnation(5);
    return sender;
  }

  FakeClock clock_;
  RoundCoordination coordination_{/*round=*/8};
  RoundPauser holder_{&clock_, &coordination_, Chief()};
};

TEST_F(RoundPauserTest, HoldsUntilItReleases) {
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

TEST_F(RoundPauserTest, ReleasesAfterAnAnswerThatWasLost) {
  coordination_.failure = absl::DeadlineExceededError("lost");
  EXPECT_THAT(holder_.Hold(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                       testing::HasSubstr("hold rounds")));
  EXPECT_FALSE(coordination_.held);
  EXPECT_EQ(coordination_.releases, 1);
}

// No time passes in its waits: they end at once, and what is waited for is
// there, or it is waited for again.
class HastyClock : public FakeClock {
 public:
  bool Await(absl::Mutex* mu, const absl::Condition& condition,
             absl::Duration timeout) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (timeout == absl::InfiniteDuration()) mu->Await(condition);
    return condition.Eval();
  }
};

TEST_F(RoundPauserTest, HoldsOnWhileARunIsUnderWay) {
  const HastyClock clock;
  RoundPauser holder(&clock, &coordination_, Chief());
  RoundPauser::Done done;
  coordination_.after_hold = [&] {
    if (coordination_.holds == 4) done(absl::OkStatus());
  };
  EXPECT_THAT(holder.RunPaused([&](const StepToken& token, auto run_done) {
    EXPECT_EQ(token.round(), 8);
    done = std::move(run_done);
  }),
              IsOk());
  EXPECT_EQ(coordination_.holds, 5) << "once, while it ran, and to be sure";
  EXPECT_FALSE(coordination_.held);
}

TEST_F(RoundPauserTest, ARunThatWasNotHeldIsBegunAnew) {
  int64_t rounds = 8;
  std::vector<int64_t> seen;
  const auto run = [&](const StepToken& token, const RoundPauser::Done& done) {
    seen.push_back(token.round());
    if (rounds < 10) coordination_.set_round(++rounds);
    done(absl::OkStatus());
  };
  EXPECT_THAT(holder_.RunPaused(run), IsOk());
  EXPECT_THAT(seen, testing::ElementsAre(8, 9, 10));
  EXPECT_FALSE(coordination_.held);
}

TEST_F(RoundPauserTest, ARunThatIsNeverHeldIsAnError) {
  int64_t rounds = 8;
  EXPECT_THAT(holder_.RunPaused([&](const StepToken&, const auto& done) {
    coordination_.set_round(++rounds);
    done(absl::OkStatus());
  }),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_FALSE(coordination_.held);
}

TEST_F(RoundPauserTest, RefusesAStateOfAnotherRound) {
  coordination_.state_ahead = 1;
  EXPECT_THAT(holder_.Hold(), StatusIs(absl::StatusCode::kInternal));
  EXPECT_FALSE(coordination_.held);
}

}  // namespace
}  // namespace muster
