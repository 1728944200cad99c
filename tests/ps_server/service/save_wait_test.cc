#include "ps_server/service/save_wait.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using Verdict = SaveWait::Verdict;

constexpr absl::Duration kPatience = absl::Seconds(6);

class SaveWaitTest : public testing::Test {
 protected:
  static JobState MakeState(JobPhase phase, int64_t raised, int64_t answered) {
    JobState state;
    state.set_phase(phase);
    state.set_save_requests(raised);
    state.set_saves_answered(answered);
    return state;
  }

  static RequestSaveReply MakeReply(int64_t number, const JobState& state) {
    RequestSaveReply reply;
    reply.set_save_request(number);
    *reply.mutable_state() = state;
    return reply;
  }

  // Waits for the save 2.
  void Ask() {
    ASSERT_EQ(wait_.OnReply(MakeReply(2, MakeState(RUNNING, 1, 1)), now_),
              Verdict::kWait);
  }

  absl::Time now_ = absl::UnixEpoch();
  SaveWait wait_{now_ + kPatience};
};

TEST_F(SaveWaitTest, WaitsUntilItsSaveIsAnswered) {
  Ask();
  EXPECT_EQ(wait_.OnState(MakeState(RUNNING, 2, 1), now_), Verdict::kWait);
  EXPECT_EQ(wait_.OnState(MakeState(RUNNING, 2, 2), now_), Verdict::kSaved);
}

// While a ps waited for another namespace's save.
TEST_F(SaveWaitTest, ASaveHoldsNotWhatAnotherEpochHasCounted) {
  Ask();
  JobState state = MakeState(RUNNING, 2, 2);
  ASSERT_EQ(wait_.OnState(state, now_), Verdict::kSaved);
  EXPECT_EQ(wait_.Confirm(state, now_), Verdict::kSaved);
  state.set_save_error("the model was loaded anew");
  EXPECT_EQ(wait_.Confirm(state, now_), Verdict::kNotSaved);
  EXPECT_THAT(wait_.reason(), HasSubstr("loaded anew"));
}

TEST_F(SaveWaitTest, ANewPsTask0KnowsOfNoSave) {
  Ask();
  ASSERT_EQ(wait_.OnState(MakeState(RUNNING, 2, 2), now_), Verdict::kSaved);
  EXPECT_EQ(wait_.Confirm(MakeState(RUNNING, 0, 0), now_), Verdict::kNotSaved);
  EXPECT_THAT(wait_.reason(), HasSubstr("started anew"));
}

TEST_F(SaveWaitTest, ASaveThatIsThereNeedsNoWait) {
  EXPECT_EQ(wait_.OnReply(MakeReply(2, MakeState(RUNNING, 2, 2)), now_),
            Verdict::kSaved);
}

TEST_F(SaveWaitTest, AJobThatEndedUnsavedHasLostSomething) {
  Ask();
  JobState state = MakeState(DONE, 1, 1);
  EXPECT_EQ(wait_.OnState(state, now_), Verdict::kJobDone);
  state.set_unsaved(true);
  EXPECT_EQ(wait_.OnState(state, now_), Verdict::kNotSaved);
  EXPECT_THAT(wait_.reason(), HasSubstr("without its last save"));
}

TEST_F(SaveWaitTest, TellsWhyTheSaveFailed) {
  Ask();
  JobState state = MakeState(RUNNING, 2, 2);
  state.set_save_error("disk full");
  EXPECT_EQ(wait_.OnState(state, now_), Verdict::kNotSaved);
  EXPECT_EQ(wait_.reason(), "disk full");
}

TEST_F(SaveWaitTest, WithoutAnybodyToSaveItDoesNotWait) {
  RequestSaveReply reply = MakeReply(0, MakeState(RUNNING, 0, 0));
  reply.set_reason("no chief is alive");
  EXPECT_EQ(wait_.OnReply(reply, now_), Verdict::kNotSaved);
  EXPECT_EQ(wait_.reason(), "no chief is alive");
}

TEST_F(SaveWaitTest, TheEndOfTheJobEndsTheWait) {
  Ask();
  EXPECT_EQ(wait_.OnState(MakeState(STOPPING, 1, 1), now_), Verdict::kWait);
  EXPECT_EQ(wait_.OnState(MakeState(DONE, 1, 1), now_), Verdict::kJobDone);
}

TEST_F(SaveWaitTest, AfterTheJobIsDoneItDoesNotWait) {
  EXPECT_EQ(wait_.OnReply(MakeReply(0, MakeState(DONE, 0, 0)), now_),
            Verdict::kJobDone);
}

TEST_F(SaveWaitTest, AModelThatIsLoadedAnewEndsTheWait) {
  Ask();
  EXPECT_EQ(wait_.OnState(MakeState(INITIAL, 1, 1), now_), Verdict::kNotSaved);
  EXPECT_THAT(wait_.reason(), HasSubstr("loaded anew"));
}

TEST_F(SaveWaitTest, PatienceEnds) {
  Ask();
  now_ += kPatience - absl::Milliseconds(1);
  EXPECT_EQ(wait_.OnState(MakeState(RUNNING, 2, 1), now_), Verdict::kWait);
  now_ += absl::Milliseconds(1);
  EXPECT_EQ(wait_.OnState(MakeState(RUNNING, 2, 1), now_), Verdict::kNotSaved);
  EXPECT_THAT(wait_.reason(), HasSubstr("did not save in time"));
}

TEST_F(SaveWaitTest, ATaskZeroThatIsGoneEndsTheWait) {
  EXPECT_EQ(wait_.OnFailure(absl::UnavailableError(
                "failed to connect to all addresses; last error: UNAVAILABLE: "
                "ipv4:127.0.0.1:4311: Failed parsing HTTP/2")),
            Verdict::kNotSaved);
  EXPECT_THAT(wait_.reason(),
              HasSubstr("/job:ps/task:0 does not answer: what listens there "
                        "does not speak gRPC"));
}

}  // namespace
}  // namespace muster
