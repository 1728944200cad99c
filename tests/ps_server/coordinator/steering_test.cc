#include "ps_server/coordinator/steering.h"

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

using ::testing::AllOf;
using ::testing::HasSubstr;

// A job of a chief that saves, and a worker.
class SteeringTest : public testing::Test {
 protected:
  SteeringTest() {
    for (const Sender& sender : {chief_, worker_}) Register(sender);
  }

  void Register(const Sender& sender) {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_chief(sender.task().index() == 0);
    auto reply = coordinator_.Register(request, now_);
    ASSERT_THAT(reply, IsOk());
    if (reply->takeover() == 0) return;
    request.set_takeover(reply->takeover());
    ASSERT_THAT(coordinator_.Register(request, now_), IsOk());
  }

  void Commit(bool saves = true) {
    BeginEpochRequest begin;
    *begin.mutable_sender() = chief_;
    begin.set_seen_epoch(coordinator_.State().model_epoch());
    const auto begun = coordinator_.BeginEpoch(begin, now_);
    ASSERT_THAT(begun, IsOk());
    CommitEpochRequest commit;
    *commit.mutable_sender() = chief_;
    commit.set_model_epoch(begun->model_epoch());
    commit.set_batch_size(10);
    commit.set_saves(saves);
    commit.mutable_stop()->set_steps(1000);
    ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  }

  absl::StatusOr<SteerReply> Save() {
    SteerRequest request;
    request.set_save(true);
    return coordinator_.Steer(request, now_);
  }
  absl::StatusOr<SteerReply> Stop() {
    SteerRequest request;
    request.set_stop(true);
    return coordinator_.Steer(request, now_);
  }
  absl::StatusOr<SteerReply> Drain(const std::string& job, int index) {
    SteerRequest request;
    request.mutable_drain()->set_job(job);
    request.mutable_drain()->set_index(index);
    return coordinator_.Steer(request, now_);
  }

  void ReportSave(int64_t number, const std::string& error = "") {
    ReportSaveRequest report;
    *report.mutable_sender() = chief_;
    report.set_save_request(number);
    report.set_error(error);
    report.set_model_epoch(coordinator_.State().model_epoch());
    ASSERT_THAT(coordinator_.ReportSave(report, now_), IsOk());
  }

  const WorkerState& WorkerOf(const JobState& state) {
    for (const WorkerState& worker : state.workers()) {
      if (worker.sender().task().index() == 1) return worker;
    }
    ADD_FAILURE() << "no worker 1";
    return WorkerState::default_instance();
  }

  const Sender chief_ = MakeSender(0, 100);
  const Sender worker_ = MakeSender(1, 101);
  absl::Time now_ = absl::UnixEpoch() + absl::Seconds(1);
  Coordinator coordinator_;
};

TEST_F(SteeringTest, Save_IsToldTheChiefAndAnsweredByItsReport) {
  Commit();
  const int64_t version = coordinator_.State().state_version();
  const auto asked = Save();
  ASSERT_THAT(asked, IsOk());
  EXPECT_EQ(asked->save_request(), 1);
  EXPECT_EQ(asked->state().saved_step(), -1);
  EXPECT_EQ(coordinator_.State().save_requests(), 1);
  EXPECT_GT(coordinator_.State().state_version(), version);
  ReportSave(1);
  now_ += absl::Seconds(3);
  const JobState state = coordinator_.StateForOperator(now_);
  EXPECT_EQ(state.saves_answered(), 1);
  EXPECT_EQ(state.saved_step(), 0);
  EXPECT_EQ(state.saved_s(), 3);
}

TEST_F(SteeringTest, SavesUntilTheAnswer_AreOne) {
  Commit();
  EXPECT_EQ(Save()->save_request(), 1);
  EXPECT_EQ(Save()->save_request(), 1);
  ReportSave(1, "the disk is full");
  EXPECT_EQ(coordinator_.State().save_error(), "the disk is full");
  EXPECT_EQ(Save()->save_request(), 2);
}

TEST_F(SteeringTest, SaveStopsNobodysSteps) {
  Commit();
  ASSERT_THAT(Save(), IsOk());
  StepRequest step;
  *step.mutable_sender() = worker_;
  step.set_model_epoch(coordinator_.State().model_epoch());
  const auto reply = AskStep(coordinator_, step, now_);
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(reply->granted());
}

TEST_F(SteeringTest, SaveThatNobodyCanMake_IsRefusedWithTheReason) {
  EXPECT_THAT(Save().status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("the job is INITIAL")));
  Commit(/*saves=*/false);
  EXPECT_THAT(Save().status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("no --train_dir")));
  Commit();
  now_ += absl::Minutes(5);
  coordinator_.Tick(now_);
  EXPECT_THAT(Save().status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("/job:worker/task:0"),
                             HasSubstr("is away; start it again"))));
}

TEST_F(SteeringTest, Stop_IsToldOnceAndSurvivesARestore) {
  Commit();
  ASSERT_THAT(Stop(), IsOk());
  EXPECT_TRUE(coordinator_.State().is_stopped());
  const int64_t version = coordinator_.State().state_version();
  ASSERT_THAT(Stop(), IsOk());
  EXPECT_EQ(coordinator_.State().state_version(), version);
  Commit();
  EXPECT_TRUE(coordinator_.State().is_stopped());
}

TEST_F(SteeringTest, StopWithoutASave_IsNoLongerStoppedWithOne) {
  Commit();
  SteerRequest request;
  request.set_stop_without_save(true);
  ASSERT_THAT(coordinator_.Steer(request, now_), IsOk());
  EXPECT_TRUE(coordinator_.State().discards_end());
  ASSERT_THAT(coordinator_.Steer(request, now_), IsOk());
  EXPECT_THAT(Stop().status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("without its last save")));
}

TEST_F(SteeringTest, StopBeforeAModel_IsRefused) {
  EXPECT_THAT(Stop().status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("no model is committed")));
}

TEST_F(SteeringTest, StopOfAJobThatEnds_ChangesNothing) {
  Commit();
  StepRequest step;
  *step.mutable_sender() = chief_;
  step.set_model_epoch(coordinator_.State().model_epoch());
  step.set_stop_reason("seconds");
  ASSERT_THAT(AskStep(coordinator_, step, now_), IsOk());
  ASSERT_EQ(coordinator_.phase(), STOPPING);
  ASSERT_THAT(Stop(), IsOk());
  EXPECT_FALSE(coordinator_.State().is_stopped());
  EXPECT_EQ(coordinator_.State().stop_reason(), "seconds");
}

TEST_F(SteeringTest, Drain_IsToldThatWorkerUntilItIsReplaced) {
  Commit();
  ASSERT_THAT(Drain("worker", 1), IsOk());
  EXPECT_TRUE(WorkerOf(coordinator_.State()).is_drained());
  ASSERT_THAT(Drain("worker", 1), IsOk());
  Register(MakeSender(1, 201));
  EXPECT_FALSE(WorkerOf(coordinator_.State()).is_drained());
}

TEST_F(SteeringTest, DrainOfWhoCannotLeave_IsRefusedByName) {
  Commit();
  EXPECT_THAT(Drain("worker", 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("/job:worker/task:0"),
                             HasSubstr("musterctl stop"))));
  EXPECT_THAT(
      Drain("ps", 0).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("SIGTERM")));
  EXPECT_THAT(
      Drain("worker", 7).status(),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/job:worker/task:7")));
  EXPECT_THAT(Drain("\n", -3).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::Not(HasSubstr("\n"))));
}

TEST_F(SteeringTest, NoWish_IsRefused) {
  EXPECT_THAT(
      coordinator_.Steer(SteerRequest(), now_).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no wish")));
}

TEST_F(SteeringTest, StateForOperators_SaysHowLongEachIsSilent) {
  Commit();
  now_ += absl::Seconds(4);
  const JobState state = coordinator_.StateForOperator(now_);
  EXPECT_EQ(WorkerOf(state).silent_s(), 4);
  EXPECT_EQ(state.idle_s(), 4);
}

}  // namespace
}  // namespace muster
