// A job that is DONE, on ps tasks that keep serving, goes on.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/ask_step.h"
#include "tests/ps_server/coordinator/coordinator_fixture.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

CoordinatorOptions KeepServing() {
  CoordinatorOptions options;
  options.worker_timeout = absl::Seconds(10);
  options.may_go_on = true;
  options.guards_tasks = true;
  return options;
}

class CoordinatorGoOnTest : public CoordinatorTest {
 protected:
  CoordinatorGoOnTest() : CoordinatorTest(KeepServing()) {}

  RegisterRequest MakeRegister(const Sender& sender,
                               const std::string& training = "a") {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_training_fingerprint(std::hash<std::string>()(training));
    request.set_training_text(training);
    request.set_chief(sender.task().index() == 0);
    return request;
  }

  JobState GoOn(const Sender& sender) {
    RegisterRequest request = MakeRegister(sender);
    request.set_goes_on(true);
    auto reply = coordinator_.Register(request, now_);
    EXPECT_THAT(reply, IsOk());
    if (reply.ok() && reply->takeover() != 0) {
      request.set_takeover(reply->takeover());
      reply = coordinator_.Register(request, now_);
      EXPECT_THAT(reply, IsOk());
    }
    return reply.ok() ? reply->state() : JobState();
  }

  // Two workers, each with one of two steps.
  void RunToEnd() {
    StartRun(2, 2);
    for (const Sender& sender : {chief_, worker_}) Step(sender, 0);
    for (const Sender& sender : {chief_, worker_}) Step(sender, 1);
    Finish(worker_);
    Finish(chief_);
    ASSERT_EQ(coordinator_.phase(), DONE);
    EXPECT_TRUE(coordinator_.State().may_go_on());
  }

  absl::Status Ask(const Sender& sender) {
    RegisterRequest request = MakeRegister(sender);
    request.mutable_sender()->set_namespace_("n");
    request.set_asks_only(true);
    return coordinator_.Register(request, now_).status();
  }

  absl::StatusOr<CommitEpochReply> Resume(const Sender& chief, int64_t steps) {
    CommitEpochRequest commit = MakeCommit(chief, epoch_, steps);
    commit.set_resumes(true);
    return coordinator_.CommitEpoch(commit, now_);
  }

  const Sender next_chief_ = MakeSender(0, 200);
  const Sender next_worker_ = MakeSender(1, 201);
};

TEST_F(CoordinatorGoOnTest, FromItsStepInItsEpochWithItsCounts) {
  RunToEnd();
  EXPECT_EQ(GoOn(next_worker_).phase(), INITIAL);
  EXPECT_EQ(GoOn(next_chief_).model_epoch(), epoch_);
  const auto commit = Resume(next_chief_, 4);
  ASSERT_THAT(commit, IsOk());
  EXPECT_EQ(commit->state().phase(), RUNNING);
  EXPECT_EQ(commit->state().global_step(), 2);
  EXPECT_EQ(commit->state().examples(), 20);
  EXPECT_EQ(commit->state().workers(1).steps(), 1);
  EXPECT_EQ(commit->state().rows().done(), 20);
  EXPECT_TRUE(Step(next_chief_, 0).granted());
  EXPECT_TRUE(Step(next_worker_, 0).granted());
  Step(next_chief_, 1);
  EXPECT_EQ(Step(next_worker_, 1).phase(), STOPPING);
  EXPECT_EQ(coordinator_.global_step(), 4);
  Finish(next_worker_);
  EXPECT_EQ(Finish(next_chief_).phase(), DONE);
  EXPECT_TRUE(coordinator_.EndIsKnown());
}

TEST_F(CoordinatorGoOnTest, ALateReportOfTheEndedRunCountsNothing) {
  RunToEnd();
  GoOn(next_worker_);
  EXPECT_FALSE(AskStep(coordinator_, MakeStep(worker_, 2), now_).ok());
  EXPECT_FALSE(Step(next_worker_, 1).granted());
  EXPECT_EQ(coordinator_.global_step(), 2);
}

TEST_F(CoordinatorGoOnTest, OnlyWhoAsksForItMakesItGoOn) {
  RunToEnd();
  EXPECT_EQ(Register(next_worker_)->state().phase(), DONE);
  EXPECT_THAT(Resume(next_chief_, 4).status().code(),
              absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Register(MakeSender(0, 300), "b"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("line 1 is 'b', there it is 'a'"),
                             HasSubstr("musterctl namespace reset"))));
}

// A ps task 0 that was started anew is told of the end by the chief alone: what
// the chief had sent before comes late, and nobody would be there to tell it
// again.
TEST_F(CoordinatorGoOnTest, ALateBeginningDoesNotUndoTheEnd) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_EQ(Finish(chief_, /*stop_job=*/true).phase(), DONE);
  EXPECT_THAT(Begin(chief_).status(),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("the job is done (done (/job:worker/task:0)"
                                 ")")));
  EXPECT_EQ(coordinator_.phase(), DONE);
}

// It has the model of a checkpoint by now.
TEST_F(CoordinatorGoOnTest, ANewEpochIsNotResumed) {
  RunToEnd();
  GoOn(next_chief_);
  ASSERT_THAT(Begin(next_chief_), IsOk());
  EXPECT_THAT(Resume(next_chief_, 4).status(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("begin again")));
}

TEST_F(CoordinatorGoOnTest, AnotherJobDoesNotReplaceATaskThatTrains) {
  StartRun(1, 9);
  RegisterRequest other = MakeRegister(next_chief_, "b");
  other.mutable_sender()->set_namespace_("n");
  EXPECT_THAT(coordinator_.Register(other, now_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("another job has namespace 'n'"),
                             HasSubstr("line 1 is 'b', there it is 'a'"),
                             HasSubstr("another --namespace"))));
  EXPECT_TRUE(Step(chief_, 0).granted());
}

// Two jobs were given one namespace, with one training.
TEST_F(CoordinatorGoOnTest, AnotherStartDoesNotReplaceATaskThatLives) {
  StartRun(1, 9);
  EXPECT_THAT(Ask(next_chief_), StatusIs(absl::StatusCode::kUnavailable,
                                         HasSubstr("whether it is alive")));
  EXPECT_THAT(Watch(chief_, coordinator_.state_version()), IsOk());
  EXPECT_THAT(
      Ask(next_chief_),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("another job has namespace 'n'"),
                     HasSubstr("is alive"), HasSubstr("another --namespace"))));
  EXPECT_TRUE(Step(chief_, 0).granted()) << "asking changes nothing";
}

TEST_F(CoordinatorGoOnTest, ADeadTaskIsReplacedWhenItDoesNotAnswer) {
  StartRun(1, 9);
  const int64_t seen = coordinator_.state_version();
  EXPECT_FALSE(Ask(next_chief_).ok());
  // A watch that the dead process has left on the way.
  EXPECT_THAT(Watch(chief_, seen), IsOk());
  // And one, to another start of ps task 0, that was further.
  EXPECT_THAT(Watch(chief_, seen + 5), IsOk());
  now_ += TakeoverQuestions::kAnswerTime - absl::Milliseconds(1);
  EXPECT_FALSE(Ask(next_chief_).ok());
  now_ += absl::Milliseconds(1);
  EXPECT_THAT(Ask(next_chief_), IsOk());
  // Its next start is no job that was refused.
  EXPECT_THAT(GoOn(next_chief_).chief().incarnation(), 200);
}

TEST_F(CoordinatorGoOnTest, EachStartAsksForItself) {
  StartRun(1, 9);
  EXPECT_FALSE(Ask(next_chief_).ok());
  EXPECT_THAT(Watch(chief_, coordinator_.state_version()), IsOk());
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(next_chief_)));
  // It dies now, and its own next start comes.
  const Sender restarted = MakeSender(0, 300);
  EXPECT_TRUE(absl::IsUnavailable(Ask(restarted)));
  now_ += TakeoverQuestions::kAnswerTime;
  EXPECT_THAT(Ask(restarted), IsOk());
}

}  // namespace
}  // namespace muster
