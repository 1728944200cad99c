#include "ps_server/coordinator/profiles.h"

#include <string>

#include "common/summary/profile_timeline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/coordinator_fixture.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A job of a chief and two workers.
class ProfilesTest : public CoordinatorTest {
 protected:
  absl::StatusOr<BeginProfileReply> BeginProfile(int steps = 20) {
    BeginProfileRequest request;
    request.set_steps(steps);
    return coordinator_.BeginProfile(request, now_);
  }
  absl::Status Add(const Sender& sender, int64_t number,
                   int64_t extra_bytes = 0) {
    AddProfileRequest request;
    *request.mutable_sender() = sender;
    request.set_number(number);
    request.mutable_part()->set_task(TaskName(sender));
    if (extra_bytes > 0) {
      request.mutable_part()->add_names(std::string(extra_bytes, 'x'));
    }
    return coordinator_.AddProfile(request, now_).status();
  }
  absl::StatusOr<GetProfileReply> Get(int64_t number, int index = 0) {
    GetProfileRequest request;
    request.set_number(number);
    request.set_index(index);
    return coordinator_.GetProfile(request, now_);
  }
  void Finish(const Sender& sender) {
    FinishRequest request;
    *request.mutable_sender() = sender;
    ASSERT_THAT(coordinator_.Finish(request, now_), IsOk());
  }

  const Sender chief_ = MakeSender(0, 100);
  const Sender a_ = MakeSender(1, 101);
  const Sender b_ = MakeSender(2, 102);
};

TEST_F(ProfilesTest, Begun_IsToldWithTheStateUntilAllHaveSent) {
  StartRun(3, 1000);
  EXPECT_EQ(coordinator_.State().profile_number(), 0);
  const int64_t version = coordinator_.State().state_version();
  const auto begun = BeginProfile(7);
  ASSERT_THAT(begun, IsOk());
  EXPECT_EQ(begun->number(), 1);
  EXPECT_GT(coordinator_.State().state_version(), version);
  EXPECT_EQ(coordinator_.State().profile_number(), 1);
  EXPECT_EQ(coordinator_.State().profile_steps(), 7);
  for (const Sender& sender : {chief_, a_, b_}) {
    EXPECT_EQ(coordinator_.State().profile_number(), 1);
    ASSERT_THAT(Add(sender, 1), IsOk());
  }
  EXPECT_EQ(coordinator_.State().profile_number(), 0);
}

TEST_F(ProfilesTest, Parts_AreAnsweredInTheOrderInWhichTheyCame) {
  StartRun(3, 1000);
  ASSERT_THAT(BeginProfile(), IsOk());
  ASSERT_THAT(Add(b_, 1), IsOk());
  ASSERT_THAT(Add(b_, 1), IsOk()) << "a repeat changes nothing";
  ASSERT_THAT(Add(chief_, 1), IsOk());
  EXPECT_EQ(Get(1, 0)->part().task(), "/job:worker/task:2");
  EXPECT_EQ(Get(1, 1)->part().task(), "/job:worker/task:0");
  const auto end = Get(1, 2);
  ASSERT_THAT(end, IsOk());
  EXPECT_FALSE(end->has_part());
  EXPECT_EQ(end->parts(), 2);
  ASSERT_EQ(end->awaited_size(), 1);
  EXPECT_EQ(end->awaited(0).index(), 1);
  EXPECT_THAT(end->missing(), IsEmpty());
}

TEST_F(ProfilesTest, StepsOutOfRange_AreRefused) {
  StartRun(1, 1000);
  for (const int steps : {-1, 0, 1001}) {
    EXPECT_THAT(BeginProfile(steps).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("wanted 1 to 1000")));
  }
  EXPECT_THAT(BeginProfile(1000), IsOk());
}

TEST_F(ProfilesTest, AJobThatDoesNotRun_IsRefusedByItsPhase) {
  EXPECT_THAT(BeginProfile().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the job is INITIAL")));
  StartRun(1, 1);
  Step(chief_, 0);
  Step(chief_, 1);
  EXPECT_THAT(BeginProfile().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the job is STOPPING")));
  Finish(chief_);
  EXPECT_THAT(BeginProfile().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the job is DONE")));
}

TEST_F(ProfilesTest, ANewerOne_TakesThePlaceOfTheFormer) {
  StartRun(2, 1000);
  ASSERT_THAT(BeginProfile(), IsOk());
  ASSERT_THAT(Add(a_, 1), IsOk());
  EXPECT_EQ(BeginProfile()->number(), 2);
  EXPECT_THAT(Get(1).status(), StatusIs(absl::StatusCode::kAborted,
                                        HasSubstr("another one, 2")));
  EXPECT_THAT(Add(chief_, 1), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("profile 1")));
  EXPECT_EQ(Get(2)->parts(), 0);
  EXPECT_EQ(Get(2)->awaited_size(), 2);
}

TEST_F(ProfilesTest, OneThatIsNotHere_IsNotFound) {
  StartRun(1, 1000);
  for (const int64_t number : {int64_t{0}, int64_t{1}, int64_t{-5}}) {
    EXPECT_THAT(Get(number).status(), StatusIs(absl::StatusCode::kNotFound,
                                               HasSubstr("is not here")));
    EXPECT_THAT(Add(chief_, number),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  ASSERT_THAT(BeginProfile(), IsOk());
  EXPECT_THAT(Get(1, -1).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ProfilesTest, WorkersThatLeave_AreMissingWithTheReason) {
  StartRun(3, 1000);
  ASSERT_THAT(BeginProfile(), IsOk());
  Finish(b_);
  ASSERT_THAT(Register(MakeSender(1, 201)), IsOk());
  EXPECT_THAT(Get(1)->missing(),
              ElementsAre("/job:worker/task:1: was started anew",
                          "/job:worker/task:2: has finished"));
  now_ += kTimeout;
  coordinator_.Tick(now_);
  EXPECT_THAT(Get(1)->awaited(), IsEmpty());
  EXPECT_THAT(Get(1)->missing(),
              ElementsAre("/job:worker/task:0: lost",
                          "/job:worker/task:1: was started anew",
                          "/job:worker/task:2: has finished"));
  EXPECT_EQ(coordinator_.State().profile_number(), 0);
}

TEST_F(ProfilesTest, AWorkerThatCameLater_IsNotAwaitedAndTaken) {
  StartRun(1, 1000);
  ASSERT_THAT(BeginProfile(), IsOk());
  ASSERT_THAT(Register(a_), IsOk());
  EXPECT_EQ(Get(1)->awaited_size(), 1);
  ASSERT_THAT(Add(a_, 1), IsOk());
  EXPECT_EQ(Get(1)->part().task(), "/job:worker/task:1");
}

TEST_F(ProfilesTest, APartTooLargeOrOfAnother_IsRefusedAndChangesNothing) {
  StartRun(2, 1000);
  ASSERT_THAT(BeginProfile(), IsOk());
  EXPECT_THAT(Add(a_, 1, kMaxProfilePartBytes),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("wanted at most")));
  AddProfileRequest request;
  *request.mutable_sender() = a_;
  request.set_number(1);
  request.mutable_part()->set_task("/job:worker/task:0\n");
  EXPECT_THAT(coordinator_.AddProfile(request, now_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("it is of '/job:worker/task:0\\n'")));
  EXPECT_EQ(Get(1)->parts(), 0);
  EXPECT_EQ(Get(1)->awaited_size(), 2);
}

TEST_F(ProfilesTest, PartsBeyondTheRoom_AreRefusedByName) {
  constexpr int kWorkers = 66;
  StartRun(kWorkers, 1000);
  ASSERT_THAT(BeginProfile(), IsOk());
  absl::Status status;
  int taken = 0;
  while (status.ok() && taken < kWorkers) {
    status = Add(MakeSender(taken, 100 + taken), 1, kMaxProfilePartBytes - 99);
    if (status.ok()) ++taken;
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("/job:worker/task:64")));
  EXPECT_EQ(taken, 64);
  EXPECT_THAT(Get(1, taken)->missing(),
              ElementsAre("/job:worker/task:64: its part found no room"));
}

TEST_F(ProfilesTest, OneThatNobodyFetches_IsForgotten) {
  StartRun(1, 1000);
  ASSERT_THAT(BeginProfile(), IsOk());
  ASSERT_THAT(Add(chief_, 1), IsOk());
  now_ += Profiles::kKept;
  coordinator_.Tick(now_);
  EXPECT_THAT(Get(1).status(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ProfilesTest, AnUnknownSender_IsToldToRegister) {
  StartRun(1, 1000);
  ASSERT_THAT(BeginProfile(), IsOk());
  EXPECT_THAT(Add(MakeSender(5, 500), 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace muster
