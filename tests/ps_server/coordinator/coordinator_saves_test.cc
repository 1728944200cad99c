// The save that a ps asks for before it stops.
#include <string>

#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/coordinator/coordinator.h"
#include "tests/ps_server/coordinator/ask_step.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kPs1 = 71;  // its incarnation

// A running job of a chief, a worker and two ps tasks.
class CoordinatorSavesTest : public testing::Test {
 protected:
  CoordinatorSavesTest() {
    for (const Sender& sender : {chief_, worker_}) Register(sender);
    Restore();
  }

  void Register(const Sender& sender) {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_chief(sender.task().index() == 0);
    ASSERT_THAT(coordinator_.Register(request, now_), IsOk());
  }

  void Restore() {
    BeginEpochRequest begin;
    *begin.mutable_sender() = chief_;
    begin.set_seen_epoch(coordinator_.State().model_epoch());
    const auto begun = coordinator_.BeginEpoch(begin, now_);
    ASSERT_THAT(begun, IsOk());
    CommitEpochRequest commit;
    *commit.mutable_sender() = chief_;
    commit.set_model_epoch(begun->model_epoch());
    commit.set_batch_size(10);
    commit.mutable_stop()->set_steps(1000);
    (*commit.mutable_ps_incarnations())[0] = kPs1 - 1;
    (*commit.mutable_ps_incarnations())[1] = kPs1;
    ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  }

  bool Step(const Sender& sender, int64_t step) {
    StepRequest request;
    *request.mutable_sender() = sender;
    request.set_model_epoch(coordinator_.State().model_epoch());
    request.set_ps_incarnation(kPs1 - 1);
    request.set_step(step);
    const auto reply = AskStep(coordinator_, request, now_);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() && reply->granted();
  }

  static Sender MakePs(int32_t index, uint64_t incarnation) {
    Sender sender;
    sender.mutable_task()->set_job("ps");
    sender.mutable_task()->set_index(index);
    sender.set_incarnation(incarnation);
    return sender;
  }

  RequestSaveReply AskFrom(const Sender& sender, bool leaving = false) {
    RequestSaveRequest request;
    *request.mutable_sender() = sender;
    request.set_leaving(leaving);
    const auto reply = coordinator_.RequestSave(request, now_);
    EXPECT_THAT(reply, IsOk());
    return reply.value_or(RequestSaveReply());
  }
  RequestSaveReply Ask() { return AskFrom(ps1_); }

  absl::Status Report(const Sender& sender, int64_t number,
                      const std::string& error = "") {
    ReportSaveRequest request;
    *request.mutable_sender() = sender;
    request.set_save_request(number);
    request.set_error(error);
    return coordinator_.ReportSave(request, now_).status();
  }

  const Sender chief_ = MakeSender(0, 100);
  const Sender worker_ = MakeSender(1, 101);
  const Sender ps1_ = MakePs(1, kPs1);
  absl::Time now_ = absl::UnixEpoch();
  Coordinator coordinator_;
};

TEST_F(CoordinatorSavesTest, SavesWhenTheStepsUnderWayAreCounted) {
  ASSERT_TRUE(Step(worker_, 0));
  EXPECT_EQ(Ask().save_request(), 1);
  EXPECT_EQ(coordinator_.State().save_requests(), 0);
  EXPECT_FALSE(Step(chief_, 0)) << "granted a step in the pause";
  EXPECT_FALSE(Step(worker_, 1));
  EXPECT_EQ(coordinator_.State().save_requests(), 1);
  EXPECT_EQ(coordinator_.global_step(), 1);
}

// It may be in an evaluation, with a step that it has not begun.
TEST_F(CoordinatorSavesTest, DoesNotWaitForTheChiefsOwnStep) {
  ASSERT_TRUE(Step(chief_, 0));
  Ask();
  EXPECT_EQ(coordinator_.State().save_requests(), 1);
  EXPECT_FALSE(Step(chief_, 1)) << "granted a step in the pause";
  EXPECT_THAT(Report(chief_, 1), IsOk());
  EXPECT_EQ(coordinator_.State().save_error(), "");
}

TEST_F(CoordinatorSavesTest, RaisingASaveAnswersWatches) {
  const int64_t version = coordinator_.state_version();
  Ask();
  EXPECT_GT(coordinator_.state_version(), version);
}

TEST_F(CoordinatorSavesTest, GrantsStepsAgainWhenThePsHasLeft) {
  Ask();
  EXPECT_THAT(Report(chief_, 1), IsOk());
  EXPECT_EQ(coordinator_.State().saves_answered(), 1);
  EXPECT_FALSE(Step(worker_, 0)) << "the ps has not left";
  const int64_t version = coordinator_.state_version();
  AskFrom(ps1_, /*leaving=*/true);
  EXPECT_GT(coordinator_.state_version(), version);
  EXPECT_TRUE(Step(worker_, 0));
}

TEST_F(CoordinatorSavesTest, GrantsStepsAgainWhenThePsIsStuck) {
  Ask();
  EXPECT_FALSE(Step(worker_, 0));
  EXPECT_LE(coordinator_.NextDeadline(), now_ + SaveRequests::kLongestPause);
  now_ += SaveRequests::kLongestPause;
  coordinator_.Tick(now_);
  EXPECT_TRUE(Step(worker_, 0));
}

TEST_F(CoordinatorSavesTest, TellsWhyASaveFailed) {
  Ask();
  EXPECT_THAT(Report(chief_, 1, "disk\nfull"), IsOk());
  EXPECT_EQ(coordinator_.State().save_error(), "disk\\nfull");
}

TEST_F(CoordinatorSavesTest, OnlyTheChiefReports) {
  Ask();
  EXPECT_THAT(Report(worker_, 1), StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(coordinator_.State().saves_answered(), 0);
}

TEST_F(CoordinatorSavesTest, OnlyAPsAsks) {
  RequestSaveRequest request;
  *request.mutable_sender() = worker_;
  EXPECT_THAT(coordinator_.RequestSave(request, now_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("/job:worker/task:1 is not a ps task")));
}

TEST_F(CoordinatorSavesTest, APsWithoutTheModelHasNothingToSave) {
  for (const Sender& ps : {MakePs(1, kPs1 + 1), MakePs(7, kPs1)}) {
    const RequestSaveReply reply = AskFrom(ps);
    EXPECT_EQ(reply.save_request(), 0);
    EXPECT_THAT(reply.reason(), HasSubstr("no committed model"));
  }
  EXPECT_TRUE(Step(worker_, 0));
}

TEST_F(CoordinatorSavesTest, WithoutAChiefNobodySaves) {
  now_ += absl::Minutes(1);
  coordinator_.Tick(now_);
  Register(worker_);
  const RequestSaveReply reply = Ask();
  EXPECT_EQ(reply.save_request(), 0);
  EXPECT_THAT(reply.reason(), HasSubstr("no chief is alive"));
}

TEST_F(CoordinatorSavesTest, AtTheEndTheFinalSaveIsWaitedFor) {
  FinishRequest finish;
  *finish.mutable_sender() = chief_;
  finish.set_stop_job(true);
  ASSERT_THAT(coordinator_.Finish(finish, now_), IsOk());
  Register(chief_);
  ASSERT_EQ(coordinator_.phase(), STOPPING);
  const RequestSaveReply reply = Ask();
  EXPECT_GT(reply.save_request(), reply.state().save_requests());
  now_ += absl::Seconds(5);
  coordinator_.Tick(now_);
  EXPECT_EQ(coordinator_.State().save_requests(), 0);
  EXPECT_GT(coordinator_.NextDeadline(), now_);
}

TEST_F(CoordinatorSavesTest, ARestoreEndsThePause) {
  Ask();
  Restore();
  EXPECT_TRUE(Step(worker_, 0));
  EXPECT_NE(coordinator_.State().save_error(), "");
}

}  // namespace
}  // namespace muster
