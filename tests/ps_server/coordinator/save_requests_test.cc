#include "ps_server/coordinator/save_requests.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int64_t kNoGrants = 0;
constexpr int64_t kOneGrant = 1;

class SaveRequestsTest : public testing::Test {
 protected:
  // Asked for, raised and answered.
  int64_t AskAndAnswer(int32_t ps_task) {
    const int64_t number = saves_.Ask(ps_task, now_);
    EXPECT_TRUE(saves_.Advance(kNoGrants, now_));
    EXPECT_TRUE(saves_.Answer(number, ""));
    return number;
  }

  absl::Time now_ = absl::UnixEpoch();
  SaveRequests saves_;
};

TEST_F(SaveRequestsTest, NothingIsWantedAtFirst) {
  EXPECT_FALSE(saves_.pauses_grants());
  EXPECT_FALSE(saves_.Advance(kNoGrants, now_));
  EXPECT_EQ(saves_.raised(), 0);
  EXPECT_EQ(saves_.NextDeadline(), absl::InfiniteFuture());
}

TEST_F(SaveRequestsTest, WaitsForTheStepsUnderWay) {
  EXPECT_EQ(saves_.Ask(1, now_), 1);
  EXPECT_TRUE(saves_.pauses_grants());
  EXPECT_FALSE(saves_.Advance(kOneGrant, now_));
  EXPECT_EQ(saves_.raised(), 0);
  EXPECT_TRUE(saves_.Advance(kNoGrants, now_));
  EXPECT_EQ(saves_.raised(), 1);
  EXPECT_TRUE(saves_.pauses_grants());
}

TEST_F(SaveRequestsTest, DoesNotWaitLongForAStep) {
  saves_.Ask(1, now_);
  EXPECT_EQ(saves_.NextDeadline(), now_ + SaveRequests::kDrainTime);
  now_ += SaveRequests::kDrainTime;
  EXPECT_TRUE(saves_.Advance(kOneGrant, now_));
  EXPECT_EQ(saves_.raised(), 1);
  // The ps that asked must not say that nothing is lost.
  EXPECT_TRUE(saves_.Answer(1, ""));
  EXPECT_NE(saves_.error().find("a step was under way"), std::string::npos);
  saves_.Leave(1);
  AskAndAnswer(1);
  EXPECT_EQ(saves_.error(), "");
}

TEST_F(SaveRequestsTest, ARepeatAsksForTheSameSave) {
  EXPECT_EQ(saves_.Ask(1, now_), 1);
  saves_.Advance(kNoGrants, now_);
  EXPECT_EQ(saves_.Ask(1, now_), 1);
  EXPECT_FALSE(saves_.Advance(kNoGrants, now_));
  EXPECT_EQ(saves_.raised(), 1);
}

TEST_F(SaveRequestsTest, AllThatAskInOnePauseShareASave) {
  EXPECT_EQ(AskAndAnswer(1), 1);
  EXPECT_EQ(saves_.Ask(0, now_), 1);
  EXPECT_EQ(saves_.answered(), 1);
  saves_.Leave(1);
  EXPECT_TRUE(saves_.pauses_grants());
  saves_.Leave(0);
  EXPECT_FALSE(saves_.pauses_grants());
}

TEST_F(SaveRequestsTest, AfterThePauseANewSaveIsNeeded) {
  AskAndAnswer(1);
  saves_.Leave(1);
  EXPECT_EQ(saves_.Ask(1, now_), 2);
  EXPECT_LT(saves_.answered(), 2);
}

TEST_F(SaveRequestsTest, APsThatDiesInThePauseDoesNotHoldItForLong) {
  AskAndAnswer(1);
  EXPECT_EQ(saves_.NextDeadline(), now_ + SaveRequests::kLongestPause);
  now_ += SaveRequests::kLongestPause;
  EXPECT_TRUE(saves_.Advance(kNoGrants, now_));
  EXPECT_FALSE(saves_.pauses_grants());
}

TEST_F(SaveRequestsTest, KeepsTheErrorOfTheLastAnswer) {
  const int64_t number = saves_.Ask(1, now_);
  saves_.Advance(kNoGrants, now_);
  EXPECT_TRUE(saves_.Answer(number, "disk full"));
  EXPECT_EQ(saves_.error(), "disk full");
  EXPECT_FALSE(saves_.Answer(number, "")) << "a late repeat";
  EXPECT_EQ(saves_.error(), "disk full");
}

TEST_F(SaveRequestsTest, ASaveThatWasNotRaisedCannotBeAnswered) {
  saves_.Ask(1, now_);
  EXPECT_FALSE(saves_.Answer(1, ""));
  EXPECT_EQ(saves_.answered(), 0);
}

TEST_F(SaveRequestsTest, ANewModelEndsThePauseWithAnError) {
  const int64_t number = saves_.Ask(1, now_);
  saves_.Advance(kNoGrants, now_);
  saves_.Clear();
  EXPECT_FALSE(saves_.pauses_grants());
  EXPECT_EQ(saves_.answered(), number);
  EXPECT_NE(saves_.error(), "");
}

}  // namespace
}  // namespace muster
