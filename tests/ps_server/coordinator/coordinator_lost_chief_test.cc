// ps task 0 while nobody is there to save the model.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/ask_step.h"
#include "tests/ps_server/coordinator/coordinator_fixture.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A chief, which saves every ten steps or 60 s, and a worker.
class CoordinatorLostChiefTest : public CoordinatorTest {
 protected:
  static constexpr absl::Duration kMaxWait = absl::Seconds(100);

  CoordinatorLostChiefTest() : CoordinatorTest(WithMaxWait()) {}

  static CoordinatorOptions WithMaxWait() {
    CoordinatorOptions options = Options();
    options.max_wait = kMaxWait;
    return options;
  }

  void Start(int64_t stop_steps, int64_t every_steps = 10,
             double every_seconds = 60, bool saves = true) {
    ASSERT_THAT(Register(chief_), IsOk());
    ASSERT_THAT(Register(worker_), IsOk());
    const auto begun = Begin(chief_);
    ASSERT_THAT(begun, IsOk());
    epoch_ = begun->model_epoch();
    CommitEpochRequest commit = MakeCommit(chief_, epoch_, stop_steps);
    commit.set_saves(saves);
    commit.set_save_every_steps(every_steps);
    commit.set_save_every_seconds(every_seconds);
    ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  }

  void LoseTheChief() {
    Pass(kTimeout, {worker_});
    ASSERT_TRUE(coordinator_.State().workers(0).lost());
    coordinator_.TakeLines();
  }

  // The worker trains on its own; returns the steps that it was granted.
  int Train(int most) {
    int granted = 0;
    while (granted < most && Step(worker_, taken_).granted()) {
      ++granted;
      ++taken_;
    }
    return granted;
  }

  void ReportSave(const Sender& chief, int64_t global_step) {
    ReportSaveRequest request;
    *request.mutable_sender() = chief;
    request.set_global_step(global_step);
    request.set_model_epoch(epoch_);
    ASSERT_THAT(coordinator_.ReportSave(request, now_), IsOk());
  }

  void ReportOverdue(const Sender& chief, const std::string& overdue) {
    ReportSaveRequest request;
    *request.mutable_sender() = chief;
    request.set_overdue(overdue);
    ASSERT_THAT(coordinator_.ReportSave(request, now_), IsOk());
  }

  // The worker has taken all steps, and stays until the chief has saved.
  void ReachTheEnd() {
    Train(1000);
    ASSERT_EQ(coordinator_.phase(), STOPPING);
    FinishRequest request;
    *request.mutable_sender() = worker_;
    request.set_stays(true);
    request.set_model_epoch(epoch_);
    ASSERT_THAT(coordinator_.Finish(request, now_), IsOk());
  }

  int64_t taken_ = 0;
};

TEST_F(CoordinatorLostChiefTest, NoMoreStepsAreGrantedThanTheIntervalOfSaves) {
  Start(/*stop_steps=*/100);
  LoseTheChief();
  EXPECT_EQ(Train(100), 10);
  EXPECT_THAT(
      coordinator_.TakeLines(),
      ElementsAre(HasSubstr("no step is granted until /job:worker/task:0 is "
                            "back to save the model: 10 steps since the save "
                            "at step 0 (checkpoint.every_steps: 10, ")));
  const StepReply reply = Step(worker_, taken_);
  EXPECT_FALSE(reply.granted());
  ASSERT_EQ(reply.waiting_for_size(), 1);
  EXPECT_EQ(reply.waiting_for(0).index(), 0);
  EXPECT_THAT(reply.waiting_why(), HasSubstr("to come back and save"));
}

TEST_F(CoordinatorLostChiefTest, AChiefThatIsBackEndsThePause) {
  Start(/*stop_steps=*/100);
  LoseTheChief();
  EXPECT_EQ(Train(100), 10);
  const int64_t version = coordinator_.state_version();
  coordinator_.TakeLines();
  ASSERT_THAT(Register(MakeSender(0, 555)), IsOk());
  EXPECT_GT(coordinator_.state_version(), version) << "who waits is woken";
  EXPECT_THAT(coordinator_.TakeLines(),
              Contains(HasSubstr("steps are granted again")));
  EXPECT_EQ(Train(15), 15);
}

TEST_F(CoordinatorLostChiefTest, WhatIsSavedIsNotCounted) {
  Start(/*stop_steps=*/100);
  EXPECT_EQ(Train(8), 8);
  Step(worker_, taken_++);
  ReportSave(chief_, 8);
  LoseTheChief();
  EXPECT_EQ(Train(100), 9);  // to step 18
}

TEST_F(CoordinatorLostChiefTest, ThePauseAlsoComesByTime) {
  Start(/*stop_steps=*/100, /*every_steps=*/0);
  LoseTheChief();
  EXPECT_EQ(Train(20), 20);
  Pass(absl::Seconds(49), {worker_});
  EXPECT_EQ(Train(20), 20);
  Pass(absl::Seconds(1), {worker_});
  EXPECT_EQ(Train(20), 0);
}

TEST_F(CoordinatorLostChiefTest, AChiefThatIsThereMaySaveAsLateAsItLikes) {
  Start(/*stop_steps=*/100);
  Pass(kTimeout / 2, {chief_, worker_});
  EXPECT_EQ(Train(50), 50);
}

TEST_F(CoordinatorLostChiefTest, WithoutATrainDirNothingIsPaused) {
  Start(/*stop_steps=*/100, 10, 60, /*saves=*/false);
  LoseTheChief();
  EXPECT_EQ(Train(1000), 100);
  EXPECT_EQ(coordinator_.phase(), STOPPING);
  EXPECT_FALSE(coordinator_.State().unsaved());
  EXPECT_EQ(Finish(worker_).phase(), DONE);
}

TEST_F(CoordinatorLostChiefTest, TheEndWaitsForTheNextStartOfTheChief) {
  Start(/*stop_steps=*/5);
  LoseTheChief();
  ReachTheEnd();
  EXPECT_TRUE(coordinator_.State().unsaved());
  EXPECT_THAT(coordinator_.TakeLines(),
              Contains(HasSubstr("waiting for /job:worker/task:0 to come back "
                                 "and save the model: 5 steps")));
  for (int i = 0; i < 9; ++i) Pass(kTimeout, {worker_});
  EXPECT_EQ(coordinator_.phase(), STOPPING);
  const Sender next = MakeSender(0, 555);
  ASSERT_THAT(Register(next), IsOk());
  for (int i = 0; i < 20; ++i) Pass(kTimeout / 2, {next, worker_});
  EXPECT_EQ(coordinator_.phase(), STOPPING) << "it may take its time";
  const JobState saved = Finish(next);
  EXPECT_EQ(saved.phase(), STOPPING) << "the worker is to be told";
  EXPECT_FALSE(saved.unsaved());
  EXPECT_EQ(Finish(worker_).phase(), DONE);
  EXPECT_FALSE(coordinator_.State().unsaved());
}

TEST_F(CoordinatorLostChiefTest, AChiefThatWasSilentOverTheEndSaves) {
  Start(/*stop_steps=*/5);
  LoseTheChief();
  ReachTheEnd();
  Pass(kTimeout / 2, {chief_, worker_});
  EXPECT_EQ(coordinator_.phase(), STOPPING);
  EXPECT_FALSE(Finish(chief_).unsaved());
}

// No worker stays for it: the others have left, by a signal.
TEST_F(CoordinatorLostChiefTest, TheEndWaitsForTheChiefThoughNobodyIsLeft) {
  Start(/*stop_steps=*/5);
  LoseTheChief();
  Train(1000);
  EXPECT_EQ(Finish(worker_).phase(), STOPPING);
  Pass(kMaxWait - absl::Seconds(1));
  EXPECT_EQ(coordinator_.phase(), STOPPING);
  EXPECT_EQ(coordinator_.NextDeadline(), now_ + absl::Seconds(1));
  Pass(absl::Seconds(1));
  EXPECT_EQ(coordinator_.phase(), DONE);
  EXPECT_TRUE(coordinator_.State().unsaved());
}

TEST_F(CoordinatorLostChiefTest, TheEndComesUnsavedAfterMaxWait) {
  Start(/*stop_steps=*/5);
  LoseTheChief();
  ReachTheEnd();
  const absl::Time gone = now_;
  while (now_ + kTimeout < gone + kMaxWait) Pass(kTimeout / 2, {worker_});
  EXPECT_EQ(coordinator_.phase(), STOPPING);
  EXPECT_LE(coordinator_.NextDeadline(), gone + kMaxWait);
  Pass(gone + kMaxWait - now_, {worker_});
  EXPECT_EQ(coordinator_.phase(), DONE);
  EXPECT_TRUE(coordinator_.State().unsaved());
  EXPECT_GT(coordinator_.NextDeadline(), now_) << "it does not spin";
}

TEST_F(CoordinatorLostChiefTest, AChiefThatCannotSaveIsWaitedForAsAnyTask) {
  Start(/*stop_steps=*/5);
  ReachTheEnd();
  EXPECT_TRUE(FinishUnsaved(chief_).unsaved());
  Pass(kTimeout / 2, {worker_});
  EXPECT_EQ(coordinator_.phase(), STOPPING);
  Pass(kTimeout / 2, {worker_});
  EXPECT_EQ(coordinator_.phase(), DONE);
  EXPECT_TRUE(coordinator_.State().unsaved());
}

TEST_F(CoordinatorLostChiefTest, AJobThatTheChiefEndsForAFailureIsNotAwaited) {
  Start(/*stop_steps=*/100);
  Finish(chief_, /*stop_job=*/true, "failed: no luck");
  EXPECT_EQ(Finish(worker_).phase(), DONE);
  EXPECT_FALSE(coordinator_.State().unsaved());
}

TEST_F(CoordinatorLostChiefTest, ALateReportOfAnotherEpochSavesNothing) {
  Start(/*stop_steps=*/100);
  EXPECT_EQ(Train(5), 5);
  Step(worker_, taken_++);
  epoch_ += 1;
  ReportSave(chief_, 5);
  epoch_ -= 1;
  LoseTheChief();
  EXPECT_EQ(Train(100), 4);
}

TEST_F(CoordinatorLostChiefTest, AnIntervalThatIsNoneIsRefused) {
  ASSERT_THAT(Register(chief_), IsOk());
  const auto begun = Begin(chief_);
  ASSERT_THAT(begun, IsOk());
  CommitEpochRequest commit = MakeCommit(chief_, begun->model_epoch(), 5);
  commit.set_save_every_seconds(-1);
  EXPECT_THAT(coordinator_.CommitEpoch(commit, now_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a save every 0 steps and -1 s")));
}

// Rounds of synchronous replication pause, too.
TEST_F(CoordinatorLostChiefTest, NoRoundBeginsBeyondTheInterval) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Register(worker_), IsOk());
  const auto begun = Begin(chief_);
  ASSERT_THAT(begun, IsOk());
  epoch_ = begun->model_epoch();
  CommitEpochRequest commit = MakeCommit(chief_, epoch_, 100);
  commit.set_saves(true);
  commit.set_save_every_steps(2);
  commit.mutable_replication()->mutable_sync()->set_replicas_to_aggregate(1);
  commit.mutable_replication()->mutable_sync()->set_total_replicas(2);
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  LoseTheChief();
  StepReply reply = Step(worker_, 0);
  int64_t step = 0;
  while (reply.granted() && step < 100) {
    StepRequest request = MakeStep(worker_, ++step);
    request.set_round(reply.token().round());
    const auto next = AskStep(coordinator_, request, now_);
    ASSERT_THAT(next, IsOk());
    reply = *next;
  }
  EXPECT_EQ(step, 2);
  EXPECT_EQ(coordinator_.global_step(), 2);
}

// ---- A chief that is there, and whose save hangs ----

TEST_F(CoordinatorLostChiefTest,
       ASaveThatTakesTooLong_PausesGrantsUntilItEnds) {
  Start(/*stop_steps=*/1000);
  EXPECT_EQ(Train(30), 30);
  coordinator_.TakeLines();
  ReportOverdue(chief_, "the save of step 20, which has taken 300 s");
  EXPECT_EQ(Train(100), 0);
  const StepReply reply = Step(worker_, taken_);
  ASSERT_EQ(reply.waiting_for_size(), 1);
  EXPECT_EQ(reply.waiting_for(0).index(), 0);
  EXPECT_THAT(reply.waiting_why(), HasSubstr("to end the save of step 20"));
  EXPECT_THAT(coordinator_.TakeLines(),
              ElementsAre(AllOf(
                  HasSubstr("no step is granted until /job:worker/task:0 has "
                            "ended the save of step 20, which has taken 300 s"),
                  HasSubstr("steps since the save at step 0"),
                  HasSubstr("look at the disk"))));
  // It is said again as long as it hangs.
  for (int i = 0; i < 20; ++i) {
    Pass(absl::Seconds(30), {chief_, worker_});
    ReportOverdue(chief_, "the save of step 20, which has taken longer");
    EXPECT_EQ(Train(1), 0);
  }
  ReportSave(chief_, 20);
  EXPECT_THAT(coordinator_.TakeLines(),
              Contains(HasSubstr("steps are granted again")));
  EXPECT_EQ(Train(50), 50);
}

TEST_F(CoordinatorLostChiefTest, ASaveThatFailsAfterTooLong_EndsThePause) {
  Start(/*stop_steps=*/1000);
  ReportOverdue(chief_, "the save of step 0");
  EXPECT_EQ(Train(100), 0);
  ReportOverdue(chief_, "");
  EXPECT_EQ(Train(50), 50);
}

TEST_F(CoordinatorLostChiefTest, AnotherStartOfTheChief_EndsThePause) {
  Start(/*stop_steps=*/1000);
  ReportOverdue(chief_, "the save of step 0");
  EXPECT_EQ(Train(100), 0);
  ASSERT_THAT(Register(MakeSender(0, 555)), IsOk());
  EXPECT_EQ(Train(5), 5);
}

TEST_F(CoordinatorLostChiefTest, ATooLongSaveThatIsNotSaidAgain_IsForgotten) {
  Start(/*stop_steps=*/1000);
  ReportOverdue(chief_, "the save of step 0");
  Pass(absl::Seconds(89), {chief_, worker_});
  EXPECT_EQ(Train(5), 0);
  Pass(absl::Seconds(1), {chief_, worker_});
  EXPECT_EQ(Train(5), 5);
}

TEST_F(CoordinatorLostChiefTest, SlowSavesThatEnd_PauseNobody) {
  Start(/*stop_steps=*/1000);
  for (int save = 1; save <= 10; ++save) {
    EXPECT_EQ(Train(50), 50);
    Pass(kTimeout / 2, {chief_, worker_});
    ReportSave(chief_, taken_ - 45);
  }
}

}  // namespace
}  // namespace muster
