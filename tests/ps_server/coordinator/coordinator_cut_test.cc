// The steps that a checkpoint's cuts hold, and their workers' reports.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/coordinator/coordinator_fixture.h"
#include "tests/ps_server/coordinator/coordinator_job.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSteps = 100;

class CoordinatorCutTest : public CoordinatorTest {
 protected:
  void SetUp() override { StartRun(/*workers=*/2, kSteps); }

  // The worker is granted its step `step`, after having reported those before.
  void TakeStep(const Sender& sender, int64_t step) {
    for (int64_t i = 0; i < step; ++i) granted_ = Step(sender, i);
    ASSERT_TRUE(granted_.granted());
  }

  // As a worker counts: the grant's counts, and a step of 10 rows.
  HeldStep MakeHeld(const Sender& sender, int64_t step) const {
    HeldStep held;
    *held.mutable_sender() = sender;
    held.set_step(step);
    *held.mutable_counts() = granted_.token().counts();
    held.mutable_counts()->set_steps(held.counts().steps() + 1);
    held.mutable_counts()->set_examples(held.counts().examples() + 10);
    return held;
  }

  absl::Status BeginCut(const Sender& sender, bool holds_steps = false) {
    BeginCutRequest request;
    request.set_holds_steps(holds_steps);
    *request.mutable_sender() = sender;
    request.set_model_epoch(epoch_);
    request.set_cut(++cuts_);
    return coordinator_.BeginCut(request, now_).status();
  }

  // The cut of a moment.
  absl::StatusOr<ConfirmCutReply> Confirm(const HeldStep& held) {
    EXPECT_THAT(BeginCut(chief_), IsOk());
    ConfirmCutRequest request;
    *request.mutable_sender() = chief_;
    request.set_model_epoch(epoch_);
    *request.add_held() = held;
    return coordinator_.ConfirmCut(request, now_);
  }

  WorkerState Worker() const { return coordinator_.State().workers(1); }

  StepReply granted_;
  int64_t cuts_ = 0;
};

TEST_F(CoordinatorCutTest, Grant_SaysWhatItsWorkerHasDone) {
  TakeStep(worker_, 3);
  EXPECT_EQ(granted_.token().counts().steps(), 2);
  EXPECT_EQ(granted_.token().counts().examples(), 20);
}

TEST_F(CoordinatorCutTest, HeldStep_IsCountedOnceByItsReport) {
  TakeStep(worker_, 2);
  const auto reply = Confirm(MakeHeld(worker_, 2));
  ASSERT_THAT(reply, IsOk());
  EXPECT_THAT(reply->counted(), SizeIs(1));
  EXPECT_EQ(Worker().steps(), 1);
  Step(worker_, 2);
  EXPECT_EQ(Worker().steps(), 2);
  Pass(kTimeout, {chief_});
  EXPECT_TRUE(Worker().lost());
  EXPECT_EQ(Worker().steps(), 2);
}

TEST_F(CoordinatorCutTest, HeldStepOfALostWorker_IsCounted) {
  TakeStep(worker_, 2);
  ASSERT_THAT(Confirm(MakeHeld(worker_, 2)), IsOk());
  Pass(kTimeout, {chief_});
  EXPECT_EQ(coordinator_.global_step(), 2);
  EXPECT_EQ(coordinator_.outstanding_grants(), 0);
  EXPECT_EQ(Worker().steps(), 2);
  Step(worker_, 2);  // It is back.
  EXPECT_EQ(coordinator_.global_step(), 2);
}

TEST_F(CoordinatorCutTest, HeldStepOfAReplacedStart_IsCounted) {
  TakeStep(worker_, 2);
  ASSERT_THAT(Confirm(MakeHeld(worker_, 2)), IsOk());
  ASSERT_THAT(Register(MakeSender(1, 201)), IsOk());
  EXPECT_EQ(Worker().steps(), 2);
  EXPECT_EQ(Worker().examples(), 20);
}

TEST_F(CoordinatorCutTest, HeldStepThatIsGivenUp_IsCounted) {
  TakeStep(worker_, 2);
  ASSERT_THAT(Confirm(MakeHeld(worker_, 2)), IsOk());
  Abandon(worker_, 2);
  EXPECT_EQ(Worker().steps(), 2);
}

TEST_F(CoordinatorCutTest, StepGivenUpBeforeTheCut_IsNotCounted) {
  TakeStep(worker_, 2);
  const HeldStep held = MakeHeld(worker_, 2);
  Abandon(worker_, 2);
  const auto reply = Confirm(held);
  ASSERT_THAT(reply, IsOk());
  EXPECT_THAT(reply->counted(), IsEmpty());
}

TEST_F(CoordinatorCutTest, StepOfAnEarlierReport_IsCounted) {
  TakeStep(worker_, 2);
  const HeldStep held = MakeHeld(worker_, 2);
  Step(worker_, 2);
  Step(worker_, 3);
  const auto reply = Confirm(held);
  ASSERT_THAT(reply, IsOk());
  EXPECT_THAT(reply->counted(), SizeIs(1));
}

TEST_F(CoordinatorCutTest, StepWithoutAGrantLeft_IsNotCounted) {
  TakeStep(worker_, 2);
  const HeldStep held = MakeHeld(worker_, 2);
  Pass(kTimeout, {chief_});
  // The chief takes all that are left.
  for (int64_t i = 0; i < kSteps; ++i) Step(chief_, i);
  ASSERT_THAT(Watch(worker_, 0), IsOk());
  const auto reply = Confirm(held);
  ASSERT_THAT(reply, IsOk());
  EXPECT_THAT(reply->counted(), IsEmpty());
}

TEST_F(CoordinatorCutTest, CountsThatDoNotGoOnFromTheWorkers_AreNotCounted) {
  TakeStep(worker_, 2);
  HeldStep held = MakeHeld(worker_, 2);
  held.mutable_counts()->set_steps(kSteps);
  const auto reply = Confirm(held);
  ASSERT_THAT(reply, IsOk());
  EXPECT_THAT(reply->counted(), IsEmpty());
}

TEST_F(CoordinatorCutTest, ReplacedStart_IsSaid) {
  TakeStep(worker_, 2);
  const HeldStep held = MakeHeld(worker_, 2);
  ASSERT_THAT(Register(MakeSender(1, 201)), IsOk());
  const auto reply = Confirm(held);
  ASSERT_THAT(reply, IsOk());
  EXPECT_THAT(reply->counted(), IsEmpty());
  ASSERT_THAT(reply->replaced(), SizeIs(1));
  EXPECT_EQ(reply->replaced(0).incarnation(), worker_.incarnation());
}

TEST_F(CoordinatorCutTest, NewEpoch_ForgetsHeldSteps) {
  TakeStep(worker_, 2);
  ASSERT_THAT(Confirm(MakeHeld(worker_, 2)), IsOk());
  ASSERT_THAT(Begin(chief_), IsOk());
  Pass(kTimeout, {chief_});
  EXPECT_EQ(coordinator_.global_step(), 0);
}

TEST_F(CoordinatorCutTest, ACutThatHoldsSteps_GrantsNoneUntilItIsConfirmed) {
  TakeStep(worker_, 2);
  ASSERT_THAT(BeginCut(chief_, /*holds_steps=*/true), IsOk());
  EXPECT_TRUE(Step(worker_, 1).granted()) << "it has that one";
  const StepReply refused = Step(worker_, 2);
  EXPECT_FALSE(refused.granted());
  EXPECT_EQ(refused.waiting_why(), "to cut a checkpoint");
  EXPECT_EQ(coordinator_.global_step(), 2) << "what is reported counts";
  const int64_t version = coordinator_.state_version();
  ConfirmCutRequest request;
  *request.mutable_sender() = chief_;
  request.set_model_epoch(epoch_);
  ASSERT_THAT(coordinator_.ConfirmCut(request, now_), IsOk());
  EXPECT_GT(coordinator_.state_version(), version) << "it is to ask again";
  EXPECT_TRUE(Step(worker_, 2).granted());
}

TEST_F(CoordinatorCutTest, AChiefThatDiesInACut_HoldsStepsForASecond) {
  TakeStep(worker_, 2);
  ASSERT_THAT(BeginCut(chief_, /*holds_steps=*/true), IsOk());
  EXPECT_FALSE(Step(worker_, 2).granted());
  EXPECT_EQ(coordinator_.NextDeadline(), now_ + JobSaves::kLongestCut);
  const int64_t version = coordinator_.state_version();
  Pass(JobSaves::kLongestCut - absl::Milliseconds(1), {worker_});
  EXPECT_FALSE(Step(worker_, 2).granted());
  Pass(absl::Milliseconds(1), {worker_});
  EXPECT_GT(coordinator_.state_version(), version);
  EXPECT_TRUE(Step(worker_, 2).granted());
}

TEST_F(CoordinatorCutTest, ACopyOfAnOldCut_HoldsNoSteps) {
  ASSERT_THAT(Confirm(MakeHeld(worker_, 1)), IsOk());
  --cuts_;
  ASSERT_THAT(BeginCut(chief_, /*holds_steps=*/true), IsOk());
  EXPECT_TRUE(Step(worker_, 0).granted());
}

TEST_F(CoordinatorCutTest, AnotherCut_LetsStepsGoOn) {
  ASSERT_THAT(BeginCut(chief_, /*holds_steps=*/true), IsOk());
  EXPECT_FALSE(Step(worker_, 0).granted());
  ASSERT_THAT(BeginCut(chief_), IsOk());
  EXPECT_TRUE(Step(worker_, 0).granted());
}

TEST_F(CoordinatorCutTest, StepsThatSomeShardsHave_AreCountedAsRepeated) {
  TakeStep(worker_, 2);
  const HeldStep held = MakeHeld(worker_, 2);
  ASSERT_THAT(BeginCut(chief_), IsOk());
  for (const int64_t step : {2, 3, 4}) Step(worker_, step);
  ConfirmCutRequest request;
  *request.mutable_sender() = chief_;
  request.set_model_epoch(epoch_);
  *request.add_held() = held;
  *request.add_begun() = held;
  request.mutable_begun(0)->set_step(5);
  const auto reply = coordinator_.ConfirmCut(request, now_);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->repeated_steps(), 3) << "3 and 4, and 5, not reported yet";
  EXPECT_EQ(reply->ledger().repeated(), 30);
}

TEST_F(CoordinatorCutTest, SaveWithUnreportedSteps_SavesThoseReported) {
  CommitEpochRequest commit =
      MakeCommit(chief_, Begin(chief_)->model_epoch(), kSteps);
  commit.set_saves(true);
  commit.set_save_every_steps(2);
  epoch_ = commit.model_epoch();
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  TakeStep(worker_, 2);
  ReportSaveRequest report;
  *report.mutable_sender() = chief_;
  report.set_model_epoch(epoch_);
  report.set_global_step(2);
  ASSERT_THAT(coordinator_.ReportSave(report, now_), IsOk());
  Pass(kTimeout, {worker_});  // Without the chief.
  EXPECT_TRUE(Step(worker_, 2).granted());
}

TEST_F(CoordinatorCutTest, NobodyButTheChief_ConfirmsACut) {
  ConfirmCutRequest request;
  *request.mutable_sender() = worker_;
  request.set_model_epoch(epoch_);
  EXPECT_THAT(coordinator_.ConfirmCut(request, now_),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("lease")));
}

TEST(CoordinatorCutRoundsTest, JobWithRounds_HasNoCutToConfirm) {
  CoordinatorJob job;
  job.Start(2, MakeSyncSpec(2, 2), StopAtStep(kSteps));
  ConfirmCutRequest request;
  *request.mutable_sender() = MakeSender(0, 100);
  request.set_model_epoch(1);
  EXPECT_THAT(
      job.coordinator().ConfirmCut(request, job.now()),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rounds")));
}

}  // namespace
}  // namespace muster
