// The end of a job: who is waited for, who is told, what is kept meanwhile.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/ask_step.h"
#include "tests/ps_server/coordinator/coordinator_fixture.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using CoordinatorEndTest = CoordinatorTest;

TEST_F(CoordinatorEndTest, EndsWhenEveryLiveWorkerHasFinished) {
  StartRun(2, 1);
  Step(chief_, 0);
  EXPECT_EQ(Step(chief_, 1).phase(), STOPPING);
  EXPECT_EQ(Finish(worker_).phase(), STOPPING);
  EXPECT_EQ(Finish(worker_).phase(), STOPPING);  // a repeat
  EXPECT_EQ(Finish(chief_).phase(), DONE);
}

// Who has heard of the end hears of a step that is counted after it, too.
TEST_F(CoordinatorEndTest, AStepThatIsCountedAfterTheEndMakesANewState) {
  StartRun(2, 100);
  Step(chief_, 0);
  Step(worker_, 0);
  StepRequest last = MakeStep(chief_, 1);
  last.set_stop_reason("interrupted");
  const auto stopped = AskStep(coordinator_, last, now_);
  ASSERT_THAT(stopped, IsOk());
  ASSERT_EQ(stopped->phase(), STOPPING);
  const StepReply counted = Step(worker_, 1);
  EXPECT_GT(counted.state_version(), stopped->state_version());
  EXPECT_EQ(Step(worker_, 1).state_version(), counted.state_version())
      << "a repeat";
}

TEST_F(CoordinatorEndTest, PsTaskZeroNeedNotTellItself) {
  StartRun(1, 1);
  ASSERT_THAT(Watch(MakeSender(0, 70, "ps"), 0), IsOk());
  Step(chief_, 0);
  Step(chief_, 1);
  Finish(chief_);
  EXPECT_TRUE(coordinator_.EndIsKnown());
}

TEST_F(CoordinatorEndTest, TheEndIsKnownWhenEachPsWatchesFromItOn) {
  StartRun(1, 1);
  const Sender ps = MakeSender(1, 71, "ps");
  ASSERT_THAT(Watch(ps, 0), IsOk());
  Step(chief_, 0);
  Step(chief_, 1);
  EXPECT_FALSE(coordinator_.EndIsKnown());
  const int64_t version = Finish(chief_).state_version();
  EXPECT_EQ(coordinator_.phase(), DONE);
  EXPECT_FALSE(coordinator_.EndIsKnown());
  EXPECT_LE(coordinator_.NextDeadline(), now_ + kTimeout);
  ASSERT_THAT(Watch(ps, version), IsOk());
  EXPECT_TRUE(coordinator_.EndIsKnown());
}

// So that a chief that comes back to a job that is done knows whether it has
// been saved.
TEST_F(CoordinatorEndTest, WhoComesBackToTheEndHasFinishedIfItsTaskHad) {
  StartRun(2, 1);
  Step(chief_, 0);
  Step(chief_, 1);
  Finish(worker_);
  Pass(kTimeout);
  ASSERT_EQ(coordinator_.phase(), DONE);
  EXPECT_FALSE(Register(MakeSender(0, 555))->state().workers(0).finished());
  EXPECT_TRUE(Register(MakeSender(1, 556))->state().workers(1).finished());
}

// ps_server --keep_serving.
TEST_F(CoordinatorEndTest, APsWhoseJobIsDoneRefusesAnother) {
  StartRun(1, 1);
  Step(chief_, 0);
  Step(chief_, 1);
  Finish(chief_);
  ASSERT_EQ(coordinator_.phase(), DONE);
  EXPECT_THAT(Register(MakeSender(0, 555), "b"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("is done (steps, at step 1)"),
                             HasSubstr("line 1 is 'b', there it is 'a'"),
                             HasSubstr("start the ps tasks anew"))));
  EXPECT_THAT(Register(MakeSender(0, 555), "a"), IsOk()) << "it is the same";
}

TEST_F(CoordinatorEndTest, AnUnsavedModelIsKeptForTheNextStartOfTheChief) {
  StartRun(2, 1);
  Step(chief_, 0);
  Step(chief_, 1);
  Finish(worker_);
  EXPECT_EQ(FinishUnsaved(chief_).phase(), STOPPING);
  Pass(kTimeout - absl::Seconds(1));
  EXPECT_EQ(coordinator_.phase(), STOPPING);
  const Sender next = MakeSender(0, 555);
  const auto back = Register(next);
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->state().phase(), STOPPING);
  EXPECT_EQ(back->state().model_epoch(), epoch_);
  Pass(kTimeout - absl::Seconds(1));
  EXPECT_EQ(coordinator_.phase(), STOPPING) << "it is alive";
  EXPECT_EQ(FinishUnsaved(next).phase(), STOPPING) << "no room yet";
  const Sender last = MakeSender(0, 556);
  ASSERT_THAT(Register(last), IsOk());
  EXPECT_EQ(Finish(last).phase(), DONE);
  EXPECT_TRUE(Register(MakeSender(0, 557))->state().workers(0).finished());
}

TEST_F(CoordinatorEndTest, AnUnsavedModelIsKeptOnlySoLong) {
  StartRun(2, 1);
  Step(chief_, 0);
  Step(chief_, 1);
  Finish(worker_);
  FinishUnsaved(chief_);
  EXPECT_EQ(coordinator_.NextDeadline(), now_ + kTimeout);
  Pass(kTimeout);
  EXPECT_EQ(coordinator_.phase(), DONE);
  EXPECT_GT(coordinator_.NextDeadline(), now_) << "it does not spin";
  EXPECT_FALSE(Register(MakeSender(0, 555))->state().workers(0).finished())
      << "it has still to save";
}

TEST_F(CoordinatorEndTest, OnlyTheChiefHasAModelToSave) {
  StartRun(2, 1);
  FinishRequest request;
  *request.mutable_sender() = worker_;
  request.set_unsaved(true);
  EXPECT_THAT(coordinator_.Finish(request, now_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is not the chief")));
}

TEST_F(CoordinatorEndTest, ThePsTasksOfTheEpochAreToldOfTheEnd) {
  ASSERT_THAT(Register(chief_), IsOk());
  const auto begun = Begin(chief_);
  ASSERT_THAT(begun, IsOk());
  epoch_ = begun->model_epoch();
  CommitEpochRequest commit = MakeCommit(chief_, epoch_, 1);
  (*commit.mutable_ps_incarnations())[1] = 71;
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  Step(chief_, 0);
  Step(chief_, 1);
  const int64_t version = Finish(chief_).state_version();
  EXPECT_EQ(coordinator_.phase(), DONE);
  EXPECT_FALSE(coordinator_.EndIsKnown()) << "its first Watch may be lost";
  ASSERT_THAT(Watch(MakeSender(1, 71, "ps"), version), IsOk());
  EXPECT_TRUE(coordinator_.EndIsKnown());
}

TEST_F(CoordinatorEndTest, WaitsForTheDeadOnlySoLong) {
  StartRun(2, 1);
  Step(chief_, 0);
  Step(chief_, 1);
  Finish(chief_);
  EXPECT_EQ(coordinator_.phase(), STOPPING);
  EXPECT_EQ(coordinator_.NextDeadline(), now_ + kTimeout);
  Pass(kTimeout);
  EXPECT_EQ(coordinator_.phase(), DONE);
}

// Fixture for a cluster of two workers.
class LatecomerTest : public CoordinatorTest {
 protected:
  LatecomerTest() : CoordinatorTest(TwoExpected()) {}

  static CoordinatorOptions TwoExpected() {
    CoordinatorOptions options = Options();
    options.expected_tasks = 2;
    return options;
  }

  // A job of which only the chief has come, at its end.
  void FinishWithoutTheWorker() {
    StartRun(1, 1);
    Step(chief_, 0);
    Step(chief_, 1);
    EXPECT_EQ(Finish(chief_).phase(), STOPPING);
  }

  const absl::Duration wait_ = TwoExpected().latecomer_wait;
};

TEST_F(LatecomerTest, AFinishedJobWaitsAWhileForAWorkerThatNeverCame) {
  FinishWithoutTheWorker();
  EXPECT_EQ(coordinator_.NextDeadline(), now_ + wait_);
  Pass(wait_ / 2);
  EXPECT_EQ(coordinator_.phase(), STOPPING);
  Pass(wait_ / 2);
  EXPECT_EQ(coordinator_.phase(), DONE);
}

TEST_F(LatecomerTest, AWorkerThatComesLateIsToldAndEndsTheWait) {
  FinishWithoutTheWorker();
  Pass(wait_ / 2);
  const auto late = Register(worker_);
  ASSERT_THAT(late, IsOk());
  EXPECT_EQ(late->state().phase(), STOPPING);
  Pass(wait_);
  EXPECT_EQ(coordinator_.phase(), STOPPING);
  EXPECT_EQ(Finish(worker_).phase(), DONE);
}

TEST_F(CoordinatorEndTest, TheChiefMayStopTheJob) {
  StartRun(2, 100);
  Step(worker_, 0);
  FinishRequest request;
  *request.mutable_sender() = worker_;
  request.set_stop_job(true);
  EXPECT_THAT(
      coordinator_.Finish(request, now_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not the chief")));
  const JobState state = Finish(chief_, /*stop_job=*/true, "interrupted");
  EXPECT_EQ(state.phase(), STOPPING);
  EXPECT_EQ(state.stop_reason(), "interrupted (/job:worker/task:0)");
  // The step that was under way still counts.
  EXPECT_EQ(Step(worker_, 1).global_step(), 1);
  EXPECT_EQ(Finish(worker_).phase(), DONE);
}

TEST_F(CoordinatorEndTest, TheChiefMayStopTheJobAndStayAMember) {
  StartRun(2, 100);
  EXPECT_TRUE(Step(chief_, 0).granted());
  EXPECT_TRUE(Step(worker_, 0).granted());
  StepRequest request = MakeStep(worker_, 1);
  request.set_stop_reason("seconds");
  EXPECT_THAT(
      AskStep(coordinator_, request, now_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not the chief")));
  request = MakeStep(chief_, 1);
  request.set_stop_reason("seconds");
  const auto reply = AskStep(coordinator_, request, now_);
  ASSERT_THAT(reply, IsOk());
  EXPECT_FALSE(reply->granted());
  EXPECT_EQ(reply->phase(), STOPPING);
  EXPECT_EQ(reply->global_step(), 1);
  EXPECT_EQ(coordinator_.State().stop_reason(), "seconds");
  // The step that was under way still counts; the chief is waited for.
  EXPECT_EQ(Step(worker_, 1).global_step(), 2);
  EXPECT_EQ(Finish(worker_).phase(), STOPPING);
  EXPECT_EQ(Finish(chief_).phase(), DONE);
}

TEST_F(CoordinatorEndTest, AWorkerThatLeavesEarlyDoesNotEndTheJob) {
  StartRun(2, 100);
  Finish(worker_, /*stop_job=*/false, "interrupted");
  Finish(chief_, /*stop_job=*/false, "failed");
  EXPECT_EQ(coordinator_.phase(), RUNNING);
}

// It may have stood still (SIGSTOP, a paused container).
TEST_F(CoordinatorEndTest, ALostWorkerIsWaitedForToLearnOfTheEnd) {
  StartRun(2, 1);
  Pass(kTimeout, {chief_});
  Step(chief_, 0);
  Step(chief_, 1);
  coordinator_.TakeLines();
  ASSERT_EQ(Finish(chief_).phase(), DONE);
  EXPECT_THAT(
      coordinator_.TakeLines(),
      ElementsAre(AllOf(HasSubstr("staying at most 10s for /job:worker"),
                        HasSubstr("/task:1"))));
  EXPECT_FALSE(coordinator_.EndIsKnown());
  EXPECT_EQ(coordinator_.NextDeadline(), now_ + kTimeout);
  Pass(kTimeout - absl::Seconds(1));
  EXPECT_FALSE(coordinator_.EndIsKnown());
  ASSERT_THAT(Watch(worker_, 0), IsOk());
  EXPECT_TRUE(coordinator_.EndIsKnown());
}

TEST_F(CoordinatorEndTest, ALostWorkerIsWaitedForOnlyForTheTimeout) {
  StartRun(2, 1);
  Pass(kTimeout, {chief_});
  Step(chief_, 0);
  Step(chief_, 1);
  ASSERT_EQ(Finish(chief_).phase(), DONE);
  Pass(kTimeout);
  EXPECT_TRUE(coordinator_.EndIsKnown());
}

// Some ps tasks may have left, so that it cannot do more than ask.
TEST_F(CoordinatorEndTest, ANewStartOfALostWorkerLearnsOfTheEndByAsking) {
  StartRun(2, 1);
  Pass(kTimeout, {chief_});
  Step(chief_, 0);
  Step(chief_, 1);
  ASSERT_EQ(Finish(chief_).phase(), DONE);
  RegisterRequest question;
  question.set_protocol_version(kProtocolVersion);
  *question.mutable_sender() = MakeSender(1, 555);
  question.set_training_fingerprint(std::hash<std::string>()("a"));
  question.set_asks_only(true);
  const auto reply = coordinator_.Register(question, now_);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->state().phase(), DONE);
  EXPECT_TRUE(coordinator_.EndIsKnown());
}

TEST_F(CoordinatorEndTest, WhatTheRestoredModelHasReachedEndsItWithoutAStep) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Register(worker_), IsOk());
  epoch_ = Begin(chief_)->model_epoch();
  CommitEpochRequest commit = MakeCommit(chief_, epoch_, 100);
  commit.set_global_step(30);
  commit.mutable_stop()->set_target_accuracy(0.9);
  commit.set_reached("target_accuracy");
  const auto committed = coordinator_.CommitEpoch(commit, now_);
  ASSERT_THAT(committed, IsOk());
  EXPECT_EQ(committed->state().phase(), STOPPING);
  EXPECT_EQ(committed->state().stop_reason(), "target_accuracy");
  EXPECT_EQ(committed->state().stop().target_accuracy(), 0.9);
  EXPECT_FALSE(Step(worker_, 0).granted());
  // What ps task 0 counts goes before.
  epoch_ = Begin(chief_)->model_epoch();
  commit.set_model_epoch(epoch_);
  commit.set_global_step(100);
  EXPECT_EQ(coordinator_.CommitEpoch(commit, now_)->state().stop_reason(),
            "steps");
}

// ---- Nobody trains --------------------------------------------------------

class CoordinatorAbsenceTest : public CoordinatorTest {
 protected:
  static constexpr absl::Duration kMaxWait = absl::Seconds(60);
  static constexpr absl::Duration kMoment = absl::Milliseconds(1);

  CoordinatorAbsenceTest() : CoordinatorTest(AbsenceOptions()) {
    coordinator_.Tick(now_);
  }

  static CoordinatorOptions AbsenceOptions() {
    CoordinatorOptions options = Options();
    options.max_wait = kMaxWait;
    options.ends_without_workers = true;
    return options;
  }

  void ExpectEndsAt(absl::Time end) {
    EXPECT_EQ(coordinator_.NextDeadline(), end);
    Pass(end - now_ - kMoment);
    EXPECT_EQ(coordinator_.abandoned(), "");
    const int64_t version = coordinator_.state_version();
    Pass(kMoment);
    EXPECT_THAT(coordinator_.abandoned(),
                HasSubstr("nobody has trained here for 1m (--max_wait)"));
    EXPECT_GT(coordinator_.state_version(), version) << "those who watch hear";
    EXPECT_EQ(coordinator_.State().abandoned(), coordinator_.abandoned());
    EXPECT_NE(coordinator_.phase(), DONE) << "a worker would call that success";
  }
};

TEST_F(CoordinatorAbsenceTest, NobodyEverCame_EndsMaxWaitAfterTheStart) {
  ExpectEndsAt(now_ + kMaxWait);
}

TEST_F(CoordinatorAbsenceTest, AWorkerThatIsThere_IsNoAbsence) {
  Pass(kMaxWait - kMoment);
  ASSERT_THAT(Register(worker_), IsOk());
  for (int i = 0; i < 100; ++i) Pass(kTimeout / 2, {worker_});
  EXPECT_EQ(coordinator_.abandoned(), "");
}

TEST_F(CoordinatorAbsenceTest, AllAreLost_EndsMaxWaitAfterTheLastWord) {
  StartRun(2, 100);
  Pass(kTimeout - kMoment, {worker_});
  const absl::Time last = now_;
  Pass(kTimeout);
  ExpectEndsAt(last + kMaxWait);
}

TEST_F(CoordinatorAbsenceTest, OneThatComesBackInTime_BeginsTheWaitAnew) {
  StartRun(2, 100);
  Pass(kMaxWait - kMoment);
  Pass(absl::ZeroDuration(), {chief_});
  const absl::Time last = now_;
  Pass(kTimeout);
  ExpectEndsAt(last + kMaxWait);
}

TEST_F(CoordinatorAbsenceTest, OneFinishedAndTheRestNeverCame_Ends) {
  ASSERT_THAT(Register(worker_), IsOk());
  Finish(worker_);
  const absl::Time last = now_;
  Pass(StateVersions::kPause);
  ExpectEndsAt(last + kMaxWait);
}

// A program of one's own calls the shards, and registers nowhere.
TEST_F(CoordinatorAbsenceTest, WhoeverCallsTheShards_IsNoAbsence) {
  for (int i = 0; i < 10; ++i) {
    Pass(kMaxWait - kMoment);
    coordinator_.HearOfOthers(now_);
  }
  coordinator_.HearOfOthers(absl::InfinitePast());
  ExpectEndsAt(now_ + kMaxWait);
}

TEST_F(CoordinatorAbsenceTest, LostSteps_AreNamed) {
  ASSERT_THAT(Register(chief_), IsOk());
  CommitEpochRequest commit =
      MakeCommit(chief_, Begin(chief_)->model_epoch(), 100);
  commit.set_saves(true);
  commit.set_save_every_steps(10);
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  epoch_ = commit.model_epoch();
  Step(chief_, 0);
  Step(chief_, 1);
  Pass(kTimeout);
  Pass(kMaxWait);
  EXPECT_THAT(coordinator_.abandoned(),
              HasSubstr("lost are 1 steps since the save at step 0"));
}

// The end of a job has limits of its own.
TEST_F(CoordinatorAbsenceTest, AJobThatIsDone_IsNotAbandoned) {
  StartRun(1, 1);
  Step(chief_, 0);
  Step(chief_, 1);
  Finish(chief_);
  Pass(2 * kMaxWait);
  EXPECT_EQ(coordinator_.phase(), DONE);
  EXPECT_EQ(coordinator_.abandoned(), "");
}

TEST_F(CoordinatorEndTest, WhereThePsStays_NobodyIsMissed) {
  Pass(absl::Hours(1000));
  EXPECT_EQ(coordinator_.abandoned(), "");
  EXPECT_EQ(coordinator_.NextDeadline(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace muster
