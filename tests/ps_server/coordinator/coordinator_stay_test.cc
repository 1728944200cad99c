#include "absl/time/time.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/coordinator/coordinator.h"
#include "tests/ps_server/coordinator/coordinator_job.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = CoordinatorJob::kTimeout;

// The time between the workers' last steps and the chief's last save.
class CoordinatorStayTest : public ::testing::Test {
 protected:
  CoordinatorStayTest() { job_.Start(2, ReplicationSpec(), StopAtStep(1)); }

  // The chief takes the job's only step.
  void Stop() {
    job_.Step(chief_, 0);
    job_.Step(chief_, 1);
    ASSERT_EQ(coordinator().phase(), STOPPING);
  }

  FinishRequest MakeStay() {
    FinishRequest request;
    *request.mutable_sender() = worker_;
    request.set_stays(true);
    request.set_model_epoch(coordinator().State().model_epoch());
    return request;
  }

  void Send(const FinishRequest& request) {
    ASSERT_THAT(coordinator().Finish(request, job_.now()), IsOk());
    job_.Settle();
  }

  // The worker has reported its last step, and stays.
  void Stay() {
    Send(MakeStay());
    EXPECT_TRUE(job_.WorkerOf(1).finished());
  }

  void FinishUnsaved() {
    FinishRequest request;
    *request.mutable_sender() = chief_;
    request.set_unsaved(true);
    Send(request);
  }

  Coordinator& coordinator() { return job_.coordinator(); }
  const Traffic& TrafficOfWorker() {
    state_ = coordinator().State();
    return state_.workers(1).traffic();
  }

  CoordinatorJob job_;
  const Sender chief_ = MakeSender(0, 100);
  const Sender worker_ = MakeSender(1, 101);

 private:
  JobState state_;
};

TEST_F(CoordinatorStayTest, TheChiefHearsOfTheTrafficOfWhoHasFinished) {
  Stop();
  EXPECT_EQ(TrafficOfWorker().pushes(), 0);
  FinishRequest stay = MakeStay();
  stay.mutable_traffic()->set_pushes(3);
  stay.mutable_traffic()->set_bytes_sent(12);
  Send(stay);
  EXPECT_EQ(TrafficOfWorker().pushes(), 3);
  EXPECT_EQ(TrafficOfWorker().bytes_sent(), 12);
}

TEST_F(CoordinatorStayTest, WhoStaysHasFinishedButIsWaitedFor) {
  Stop();
  Stay();
  job_.Finish(chief_);
  EXPECT_EQ(coordinator().phase(), STOPPING);
  job_.Finish(worker_);
  EXPECT_EQ(coordinator().phase(), DONE);
}

TEST_F(CoordinatorStayTest, WhoHasLeftDoesNotStayByALateMessage) {
  Stop();
  const FinishRequest late = MakeStay();
  Stay();
  job_.Finish(worker_);
  Send(late);
  job_.Finish(chief_);
  EXPECT_EQ(coordinator().phase(), DONE);
}

// A ps was lost before the chief could save.
TEST_F(CoordinatorStayTest, ANewEpochHasWhoStayed) {
  Stop();
  Stay();
  ASSERT_THAT(job_.Commit(ReplicationSpec(), StopAtStep(2)), IsOk());
  EXPECT_FALSE(job_.WorkerOf(1).finished());
  const auto step = job_.Step(worker_, 0);
  ASSERT_TRUE(step.has_value());
  EXPECT_TRUE(step->granted());
}

TEST_F(CoordinatorStayTest, ANewEpochDoesNotHaveWhoHasLeft) {
  Stop();
  Stay();
  job_.Finish(worker_);
  ASSERT_THAT(job_.Commit(ReplicationSpec(), StopAtStep(2)), IsOk());
  EXPECT_TRUE(job_.WorkerOf(1).finished());
}

TEST_F(CoordinatorStayTest, AWordOfAnotherEpochOrPhaseHasNoEffect) {
  Send(MakeStay());
  EXPECT_FALSE(job_.WorkerOf(1).finished()) << "the job is RUNNING";
  Stop();
  FinishRequest other = MakeStay();
  other.set_model_epoch(other.model_epoch() + 1);
  Send(other);
  EXPECT_FALSE(job_.WorkerOf(1).finished());
  other = MakeStay();
  other.set_ps_incarnation(70);
  Send(other);
  EXPECT_FALSE(job_.WorkerOf(1).finished());
  Stay();
}

TEST_F(CoordinatorStayTest, WhoStaysAndIsSilentIsLost) {
  Stop();
  Stay();
  job_.Pass(kTimeout, {chief_});
  EXPECT_TRUE(job_.WorkerOf(1).lost());
  EXPECT_FALSE(job_.WorkerOf(1).finished()) << "it has not left";
  job_.Finish(chief_);
  EXPECT_EQ(coordinator().phase(), DONE);
}

TEST_F(CoordinatorStayTest, WhoComesBackSaysAgainThatItStays) {
  Stop();
  Stay();
  job_.Pass(kTimeout, {chief_});
  Stay();
  EXPECT_FALSE(job_.WorkerOf(1).lost());
  job_.Finish(chief_);
  EXPECT_EQ(coordinator().phase(), STOPPING);
}

TEST_F(CoordinatorStayTest, WhoStaysIsToldHowLongAnUnsavedChiefIsWaitedFor) {
  Stop();
  Stay();
  FinishUnsaved();
  EXPECT_TRUE(job_.WorkerOf(0).finished());
  EXPECT_TRUE(job_.WorkerOf(0).awaited());
  const int64_t version = coordinator().state_version();
  job_.Pass(kTimeout, {worker_});
  EXPECT_FALSE(job_.WorkerOf(0).awaited());
  EXPECT_GT(coordinator().state_version(), version);
  EXPECT_EQ(coordinator().phase(), STOPPING);
  job_.Finish(worker_);
  EXPECT_EQ(coordinator().phase(), DONE);
}

TEST_F(CoordinatorStayTest, ALostChiefDoesNotHoldUpWhoStays) {
  Stop();
  Stay();
  job_.Pass(kTimeout, {worker_});
  EXPECT_TRUE(job_.WorkerOf(0).lost());
  EXPECT_EQ(coordinator().phase(), STOPPING) << "the worker is to be told";
  job_.Finish(worker_);
  EXPECT_EQ(coordinator().phase(), DONE);
}

TEST_F(CoordinatorStayTest,
       AChiefWithAnotherTrainingIsRefusedWhileSomebodyStays) {
  Stop();
  Stay();
  FinishUnsaved();
  RegisterRequest request;
  request.set_protocol_version(kProtocolVersion);
  *request.mutable_sender() = MakeSender(0, 555);
  request.set_training_fingerprint(1);
  request.set_training_text("seed: 2");
  request.set_chief(true);
  EXPECT_THAT(coordinator().Register(request, job_.now()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("training differs")));
}

// A late copy of its Register came here, so that this start of ps task 0 knows
// it; it does not know this start.
TEST_F(CoordinatorStayTest, AWorkerThatWatchesAnotherStartHasToRegister) {
  WatchRequest request;
  *request.mutable_sender() = worker_;
  request.set_state_version(coordinator().state_version());
  EXPECT_THAT(coordinator().Watch(request, 1, job_.now()), IsOk());
  request.set_state_version(coordinator().state_version() + 1);
  EXPECT_THAT(coordinator().Watch(request, 2, job_.now()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("another start of ps task 0; register")));
}

}  // namespace
}  // namespace muster
