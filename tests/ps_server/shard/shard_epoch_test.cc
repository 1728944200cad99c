#include "ps_server/shard/shard_epoch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/caller/count_range.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr auto kFenced = absl::StatusCode::kFailedPrecondition;

class ShardEpochTest : public ::testing::Test {
 protected:
  absl::Status CheckPhase(int64_t number, ShardPhase phase) const {
    return epoch_.CheckPhase(sender_, FenceOf(number), phase);
  }

  absl::Status CheckFence(int64_t number) const {
    return epoch_.CheckFence(sender_, FenceOf(number));
  }

  static Fence FenceOf(int64_t number) {
    Fence fence;
    fence.set_model_epoch(number);
    return fence;
  }

  const Sender sender_ = MakeSender(/*index=*/1, /*incarnation=*/5);
  ShardEpoch epoch_{/*ps_index=*/3};
};

TEST_F(ShardEpochTest, BeforeTheFirstEpoch_NoRequestMeansTheModel) {
  EXPECT_THAT(CheckFence(0), StatusIs(kFenced, HasSubstr("is EMPTY")));
  EXPECT_THAT(epoch_.CheckReady("look", 0), StatusIs(kFenced));
}

TEST_F(ShardEpochTest, InAnEpoch_ThoseOfOtherEpochsAreFenced) {
  epoch_.Begin(4);
  EXPECT_THAT(CheckFence(4), IsOk());
  EXPECT_THAT(CheckFence(3),
              StatusIs(kFenced, HasSubstr("request from /job:worker/task:1 to "
                                          "/job:ps/task:3: it means model "
                                          "epoch 3, the shard is LOADING at "
                                          "epoch 4")));
  EXPECT_THAT(CheckFence(5), StatusIs(kFenced));
}

TEST_F(ShardEpochTest, ARequestOfAnotherPhase_IsFenced) {
  epoch_.Begin(4);
  EXPECT_THAT(CheckPhase(4, LOADING), IsOk());
  EXPECT_THAT(CheckPhase(4, READY),
              StatusIs(kFenced, HasSubstr("LOADING, the request needs READY")));
  EXPECT_THAT(epoch_.CheckReady("look", 4), StatusIs(kFenced));
  epoch_.Seal();
  EXPECT_THAT(CheckPhase(4, READY), IsOk());
  EXPECT_THAT(CheckPhase(4, LOADING), StatusIs(kFenced));
  EXPECT_THAT(epoch_.CheckReady("look", 4), IsOk());
  EXPECT_THAT(epoch_.CheckReady("look", 5), StatusIs(kFenced));
}

TEST_F(ShardEpochTest, ALoadIsBegunAgain_UntilItIsSealed) {
  epoch_.Begin(4);
  EXPECT_THAT(epoch_.CheckNew("define", 4), IsOk());
  EXPECT_THAT(epoch_.CheckNew("define", 3), StatusIs(kFenced));
  epoch_.Seal();
  EXPECT_THAT(epoch_.CheckNew("define", 4),
              StatusIs(kFenced, HasSubstr("needs a larger one")));
  EXPECT_THAT(epoch_.CheckNew("define", 5), IsOk());
}

TEST_F(ShardEpochTest, AnEpochThatIsNoCountOfRestores_IsRefused) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(epoch_.CheckNew("define", kMaxCount), IsOk());
  EXPECT_THAT(epoch_.CheckNew("define", kMaxCount + 1), StatusIs(kInvalid));
  epoch_.Begin(4);
  EXPECT_THAT(epoch_.CheckNew("define", 4 + kMaxEpochJump), IsOk());
  EXPECT_THAT(epoch_.CheckNew("define", 5 + kMaxEpochJump), StatusIs(kInvalid));
}

}  // namespace
}  // namespace muster
