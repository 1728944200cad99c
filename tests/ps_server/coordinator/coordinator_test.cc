#include "ps_server/coordinator/coordinator.h"

#include <functional>
#include <string>
#include <utility>

#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/ask_step.h"
#include "tests/ps_server/coordinator/coordinator_fixture.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(CoordinatorTest, RefusesAnotherTrainingWithTheFirstDifferentLine) {
  ASSERT_THAT(Register(chief_, "model: 1\nlr: 0.1\n"), IsOk());
  EXPECT_THAT(Register(worker_, "model: 1\nlr: 0.2\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("line 2 is 'lr: 0.2', there it is "
                                 "'lr: 0.1'")));
  EXPECT_THAT(Register(worker_, "model: 1\nlr: 0.1\n"), IsOk());
}

// Worker 1 came first, with a mistake; it is told when it says something.
TEST_F(CoordinatorTest, TheTrainingOfTheChiefIsTheJobs) {
  ASSERT_THAT(Register(worker_, "model: 1\nlr: 0.2\n"), IsOk());
  const Sender right = MakeSender(2, 102);
  ASSERT_THAT(Register(right, "model: 1\nlr: 0.2\n"), IsOk());
  ASSERT_THAT(Register(chief_, "model: 1\nlr: 0.1\n"), IsOk());
  EXPECT_TRUE(coordinator_.State().workers(1).lost()) << "nobody waits for it";
  EXPECT_THAT(Watch(worker_, 0), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("register")));
  EXPECT_THAT(Register(worker_, "model: 1\nlr: 0.2\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("from that of /job:worker/task:0: line 2 is "
                                 "'lr: 0.2', there it is 'lr: 0.1'")));
  // Another start of it that has no mistake.
  ASSERT_THAT(Register(MakeSender(2, 202), "model: 1\nlr: 0.1\n"), IsOk());
  EXPECT_THAT(Watch(MakeSender(2, 202), 0), IsOk());
  EXPECT_FALSE(coordinator_.State().workers(2).lost());
}

TEST_F(CoordinatorTest, AWorkerDoesNotReplaceTheTrainingOfALostChief) {
  ASSERT_THAT(Register(chief_, "a"), IsOk());
  Pass(kTimeout);
  EXPECT_THAT(Register(worker_, "b"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("training differs")));
  EXPECT_THAT(Register(worker_, "a"), IsOk());
}

TEST_F(CoordinatorTest, ALoneSurvivorMayBringAnotherTraining) {
  ASSERT_THAT(Register(chief_, "a"), IsOk());
  EXPECT_THAT(Register(MakeSender(0, 200), "b"), IsOk());
}

TEST_F(CoordinatorTest, RefusesAnotherProtocolAndStrangers) {
  RegisterRequest request;
  *request.mutable_sender() = worker_;
  request.set_protocol_version(kProtocolVersion + 1);
  EXPECT_THAT(
      coordinator_.Register(request, now_),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("protocol")));
  EXPECT_THAT(Register(MakeSender(0, 1, "ps")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/job:")));
  EXPECT_THAT(
      Register(MakeSender(0, 0)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("incarnation")));
}

TEST_F(CoordinatorTest, AskersThatAreNotRegisteredAreToldToRegister) {
  EXPECT_THAT(AskStep(coordinator_, MakeStep(worker_, 0), now_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("not registered")));
  EXPECT_THAT(Watch(worker_, 0), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          HasSubstr("register")));
}

TEST_F(CoordinatorTest, AReplacedIncarnationIsFencedForGood) {
  ASSERT_THAT(Register(worker_), IsOk());
  ASSERT_THAT(Register(MakeSender(1, 555)), IsOk());
  const auto is_fenced =
      StatusIs(absl::StatusCode::kFailedPrecondition, StartsWith("fenced: "));
  EXPECT_THAT(AskStep(coordinator_, MakeStep(worker_, 0), now_), is_fenced);
  EXPECT_THAT(Register(worker_), is_fenced);
}

TEST_F(CoordinatorTest, AnotherIncarnationHasToConfirmThatItTakesOver) {
  StartRun(2, 10);
  EXPECT_TRUE(Step(worker_, 0).granted());
  RegisterRequest request;
  request.set_protocol_version(kProtocolVersion);
  *request.mutable_sender() = MakeSender(1, 555);
  request.set_training_fingerprint(std::hash<std::string>()("a"));
  const int64_t version = coordinator_.state_version();
  const auto asked = coordinator_.Register(request, now_);
  ASSERT_THAT(asked, IsOk());
  EXPECT_NE(asked->takeover(), 0);
  EXPECT_EQ(coordinator_.state_version(), version);
  EXPECT_TRUE(Step(worker_, 1).granted()) << "nothing has changed";
  RegisterRequest other = request;
  other.mutable_sender()->set_incarnation(556);
  other.set_takeover(asked->takeover());
  EXPECT_NE(coordinator_.Register(other, now_)->takeover(), 0);
  request.set_takeover(asked->takeover());
  for (int i = 0; i < 2; ++i) {  // repeatable
    EXPECT_EQ(coordinator_.Register(request, now_)->takeover(), 0);
  }
  EXPECT_EQ(coordinator_.outstanding_grants(), 0);
}

TEST_F(CoordinatorTest, NoStepsBeforeCommit) {
  ASSERT_THAT(Register(chief_), IsOk());
  EXPECT_FALSE(Step(chief_, 0).granted());
  const auto begun = Begin(chief_, /*seen_epoch=*/7);
  ASSERT_THAT(begun, IsOk());
  EXPECT_EQ(begun->model_epoch(), 8);
  epoch_ = 8;
  EXPECT_FALSE(Step(chief_, 0).granted());
  ASSERT_THAT(coordinator_.CommitEpoch(MakeCommit(chief_, 8, 3), now_), IsOk());
  EXPECT_TRUE(Step(chief_, 0).granted());
}

TEST_F(CoordinatorTest, OneChiefAtATime) {
  StartRun(2, 10);
  // The same task, started anew, takes over.
  const Sender second = MakeSender(0, 200);
  ASSERT_THAT(Register(second), IsOk());
  EXPECT_THAT(Begin(chief_), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      StartsWith("fenced: ")));
  const auto begun = Begin(second);
  ASSERT_THAT(begun, IsOk());
  // Another task that calls itself chief must wait until this one is lost.
  RegisterRequest other;
  other.set_protocol_version(kProtocolVersion);
  *other.mutable_sender() = MakeSender(0, 300, "chief");
  other.set_training_fingerprint(std::hash<std::string>()("a"));
  other.set_chief(true);
  ASSERT_THAT(coordinator_.Register(other, now_), IsOk());
  EXPECT_THAT(Begin(other.sender()),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("is alive")));
  Pass(kTimeout, {other.sender()});
  ASSERT_THAT(Begin(other.sender()), IsOk());
  EXPECT_THAT(coordinator_.CommitEpoch(
                  MakeCommit(second, begun->model_epoch(), 5), now_),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("lease")));
}

TEST_F(CoordinatorTest, ALateRepeatOfBeginThrowsNoCommittedEpochAway) {
  StartRun(1, 10);
  EXPECT_THAT(Begin(chief_, epoch_ - 1),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("committed one")));
  EXPECT_EQ(coordinator_.phase(), RUNNING);
  EXPECT_TRUE(Step(chief_, 0).granted());
}

TEST_F(CoordinatorTest, WorkersCannotBeginAnEpoch) {
  ASSERT_THAT(Register(worker_), IsOk());
  EXPECT_THAT(Begin(worker_), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("not the chief")));
}

TEST_F(CoordinatorTest, ANewEpochTellsTheStepsThatWereReported) {
  StartRun(1, 5);
  Step(chief_, 0);
  Step(chief_, 1);
  const auto begun = Begin(chief_, epoch_);
  ASSERT_THAT(begun, IsOk());
  ASSERT_EQ(begun->state().workers_size(), 1);
  EXPECT_EQ(begun->state().workers(0).steps(), 1);
}

TEST_F(CoordinatorTest, CommitIsRepeatableAndNeedsItsEpoch) {
  StartRun(1, 5);
  EXPECT_TRUE(Step(chief_, 0).granted());
  EXPECT_EQ(Step(chief_, 1).global_step(), 1);
  ASSERT_THAT(coordinator_.CommitEpoch(MakeCommit(chief_, epoch_, 5), now_),
              IsOk());
  EXPECT_EQ(coordinator_.global_step(), 1) << "a repeat started again";
  EXPECT_THAT(coordinator_.CommitEpoch(MakeCommit(chief_, epoch_ + 1, 5), now_),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("begin again")));
}

TEST_F(CoordinatorTest, ACommitWithoutAStopCondition_EndsWhenTheChiefSays) {
  StartRun(1, /*stop_steps=*/0);
  EXPECT_TRUE(Step(chief_, 0).granted());
  EXPECT_TRUE(Step(chief_, 1).granted());
  StepRequest last = MakeStep(chief_, 2);
  last.set_stop_reason("done");
  ASSERT_THAT(AskStep(coordinator_, last, now_), IsOk());
  EXPECT_EQ(coordinator_.phase(), STOPPING);
  EXPECT_EQ(coordinator_.State().stop_reason(), "done");
}

TEST_F(CoordinatorTest, ACommitMayLeaveTheEndToTheChief) {
  for (const auto set :
       {&StopSpec::set_seconds, &StopSpec::set_target_accuracy}) {
    ASSERT_THAT(Register(chief_), IsOk());
    const auto begun = Begin(chief_);
    ASSERT_THAT(begun, IsOk());
    epoch_ = begun->model_epoch();
    CommitEpochRequest commit = MakeCommit(chief_, epoch_, 0);
    (commit.mutable_stop()->*set)(0.5);
    ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
    EXPECT_TRUE(Step(chief_, 0).granted());
  }
}

TEST_F(CoordinatorTest, AnEpochOfOtherPsStartsIsAnotherOne) {
  ASSERT_THAT(Register(chief_), IsOk());
  const auto begun = Begin(chief_);
  ASSERT_THAT(begun, IsOk());
  epoch_ = begun->model_epoch();
  CommitEpochRequest commit = MakeCommit(chief_, epoch_, 3);
  (*commit.mutable_ps_incarnations())[0] = 70;
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  EXPECT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk()) << "a repeat";
  StepRequest step = MakeStep(chief_, 0);
  step.set_ps_incarnation(70);
  EXPECT_TRUE(AskStep(coordinator_, step, now_)->granted());
  // A commit and a report on their way to a former ps task 0.
  (*commit.mutable_ps_incarnations())[0] = 60;
  EXPECT_THAT(coordinator_.CommitEpoch(commit, now_),
              StatusIs(absl::StatusCode::kAborted));
  step = MakeStep(chief_, 1);
  step.set_ps_incarnation(60);
  EXPECT_FALSE(AskStep(coordinator_, step, now_)->granted());
  EXPECT_EQ(coordinator_.global_step(), 0);
}

TEST_F(CoordinatorTest, AWatchEndsAtItsTimeOrWhenTheStateChanges) {
  StartRun(1, 100);
  const int64_t version = coordinator_.state_version();
  ASSERT_THAT(Watch(chief_, version, absl::Seconds(5)), IsOk());
  EXPECT_EQ(coordinator_.NextDeadline(), now_ + absl::Seconds(5));
  EXPECT_TRUE(coordinator_.TakeAnswers(now_).empty());
  now_ += absl::Seconds(5);
  EXPECT_EQ(coordinator_.TakeAnswers(now_).size(), 1);
  // Another version: at once. A ps task may watch too.
  ASSERT_THAT(Watch(MakeSender(1, 7, "ps"), version - 1, absl::Seconds(5)),
              IsOk());
  EXPECT_EQ(coordinator_.TakeAnswers(now_).size(), 1);
}

}  // namespace
}  // namespace muster
