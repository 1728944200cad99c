#include "ps_server/coordinator.h"

#include <functional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/ask_step.h"
#include "tests/ps_server/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::Duration kTimeout = absl::Seconds(10);

// A coordinator and its clock, with verbs of the domain.
class CoordinatorTest : public testing::Test {
 protected:
  explicit CoordinatorTest(const CoordinatorOptions& options = Options())
      : coordinator_(options) {}

  static CoordinatorOptions Options() {
    CoordinatorOptions options;
    options.worker_timeout = kTimeout;
    return options;
  }

  absl::StatusOr<RegisterReply> Register(const Sender& sender,
                                         const std::string& training = "a") {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_training_fingerprint(std::hash<std::string>()(training));
    request.set_training_text(training);
    request.set_chief(sender.task().index() == 0);
    const absl::StatusOr<RegisterReply> reply =
        coordinator_.Register(request, now_);
    if (!reply.ok() || reply->takeover() == 0) return reply;
    request.set_takeover(reply->takeover());
    return coordinator_.Register(request, now_);
  }

  absl::StatusOr<BeginEpochReply> Begin(const Sender& sender,
                                        int64_t seen_epoch = -1) {
    BeginEpochRequest request;
    *request.mutable_sender() = sender;
    request.set_seen_epoch(seen_epoch < 0 ? coordinator_.State().model_epoch()
                                          : seen_epoch);
    return coordinator_.BeginEpoch(request, now_);
  }

  CommitEpochRequest MakeCommit(const Sender& sender, int64_t epoch,
                                int64_t stop_steps) {
    CommitEpochRequest request;
    *request.mutable_sender() = sender;
    request.set_model_epoch(epoch);
    request.set_fingerprint(5);
    request.mutable_stop()->set_steps(stop_steps);
    request.set_batch_size(10);
    return request;
  }

  // Registers the chief and `workers` - 1 others, and commits an epoch.
  void StartRun(int workers, int64_t stop_steps) {
    for (int i = 0; i < workers; ++i) {
      ASSERT_THAT(Register(MakeSender(i, 100 + i)), IsOk());
    }
    const auto begun = Begin(MakeSender(0, 100));
    ASSERT_THAT(begun, IsOk());
    epoch_ = begun->model_epoch();
    ASSERT_THAT(coordinator_.CommitEpoch(
                    MakeCommit(MakeSender(0, 100), epoch_, stop_steps), now_),
                IsOk());
  }

  StepRequest MakeStep(const Sender& sender, int64_t step) {
    StepRequest request;
    *request.mutable_sender() = sender;
    request.set_model_epoch(epoch_);
    request.set_step(step);
    request.set_examples(step == 0 ? 0 : 10);
    request.set_data_position(step);
    request.set_loss(0.5);
    request.set_staleness(step == 0 ? 0 : 1);
    return request;
  }

  StepReply Step(const Sender& sender, int64_t step) {
    const auto reply = AskStep(coordinator_, MakeStep(sender, step), now_);
    EXPECT_THAT(reply, IsOk());
    return reply.value_or(StepReply());
  }

  StepReply Abandon(const Sender& sender, int64_t step) {
    StepRequest request = MakeStep(sender, step);
    request.set_abandoned(true);
    const auto reply = AskStep(coordinator_, request, now_);
    EXPECT_THAT(reply, IsOk());
    return reply.value_or(StepReply());
  }

  // Of a chief that could not save.
  JobState FinishUnsaved(const Sender& sender) {
    FinishRequest request;
    *request.mutable_sender() = sender;
    request.set_reason("done");
    request.set_unsaved(true);
    const auto reply = coordinator_.Finish(request, now_);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? reply->state() : JobState();
  }

  JobState Finish(const Sender& sender, bool stop_job = false,
                  const std::string& reason = "done") {
    FinishRequest request;
    *request.mutable_sender() = sender;
    request.set_reason(reason);
    request.set_stop_job(stop_job);
    const auto reply = coordinator_.Finish(request, now_);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? reply->state() : JobState();
  }

  // Lets time pass with heartbeats from `alive`.
  void Pass(absl::Duration duration, const std::vector<Sender>& alive = {}) {
    now_ += duration;
    for (const Sender& sender : alive) EXPECT_THAT(Watch(sender, 0), IsOk());
    coordinator_.Tick(now_);
    coordinator_.TakeAnswers(now_);
  }

  absl::Status Watch(const Sender& sender, int64_t state_version,
                     absl::Duration wait = absl::ZeroDuration()) {
    WatchRequest request;
    *request.mutable_sender() = sender;
    request.set_state_version(state_version);
    request.set_max_wait_ms(
        static_cast<int32_t>(absl::ToInt64Milliseconds(wait)));
    return coordinator_.Watch(request, ++watch_id_, now_);
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Seconds(1000);
  int64_t epoch_ = 0;
  uint64_t watch_id_ = 0;
  Coordinator coordinator_;
  const Sender chief_ = MakeSender(0, 100);
  const Sender worker_ = MakeSender(1, 101);
};

TEST_F(CoordinatorTest, RefusesAnotherTrainingWithTheFirstDifferentLine) {
  ASSERT_THAT(Register(chief_, "model: 1\nlr: 0.1\n"), IsOk());
  EXPECT_THAT(Register(worker_, "model: 1\nlr: 0.2\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("line 2 is 'lr: 0.2', there it is "
                                 "'lr: 0.1'")));
  EXPECT_THAT(Register(worker_, "model: 1\nlr: 0.1\n"), IsOk());
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

TEST_F(CoordinatorTest, CommitNeedsAStopCondition) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(chief_), IsOk());
  EXPECT_THAT(coordinator_.CommitEpoch(MakeCommit(chief_, 1, 0), now_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no stop condition")));
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

TEST_F(CoordinatorTest, GrantsExactlyTheStepsThatAreLeft) {
  StartRun(2, 3);
  EXPECT_TRUE(Step(chief_, 0).granted());
  EXPECT_TRUE(Step(worker_, 0).granted());
  EXPECT_TRUE(Step(chief_, 1).granted());    // 1 done, 2 out
  EXPECT_FALSE(Step(worker_, 1).granted());  // 2 done, 1 out
  EXPECT_EQ(coordinator_.phase(), RUNNING);
  const StepReply last = Step(chief_, 2);
  EXPECT_FALSE(last.granted());
  EXPECT_EQ(last.global_step(), 3);
  EXPECT_EQ(last.phase(), STOPPING);
  EXPECT_EQ(coordinator_.State().stop_reason(), "steps");
}

TEST_F(CoordinatorTest, GrantsWholeBatchesOfTheEpochs) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(chief_), IsOk());
  CommitEpochRequest commit = MakeCommit(chief_, 1, 0);
  commit.mutable_stop()->set_epochs(2.5);
  commit.set_epoch_examples(10);  // 25 examples: 2 batches of 10
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  epoch_ = 1;
  EXPECT_TRUE(Step(chief_, 0).granted());
  EXPECT_TRUE(Step(chief_, 1).granted());
  const StepReply last = Step(chief_, 2);
  EXPECT_FALSE(last.granted());
  EXPECT_EQ(last.phase(), STOPPING);
  EXPECT_EQ(coordinator_.State().stop_reason(), "epochs");
}

TEST_F(CoordinatorTest, ARestoreAtTheLimitStopsAtOnce) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(chief_), IsOk());
  CommitEpochRequest commit = MakeCommit(chief_, 1, 100);
  commit.set_global_step(100);
  const auto reply = coordinator_.CommitEpoch(commit, now_);
  ASSERT_THAT(reply, IsOk());
  EXPECT_EQ(reply->state().phase(), STOPPING);
}

TEST_F(CoordinatorTest, ARepeatedReportCountsOnceAndKeepsTheGrant) {
  StartRun(1, 10);
  EXPECT_TRUE(Step(chief_, 0).granted());
  for (int i = 0; i < 5; ++i) {
    const StepReply reply = Step(chief_, 1);
    EXPECT_TRUE(reply.granted());
    EXPECT_EQ(reply.global_step(), 1);
    EXPECT_EQ(coordinator_.outstanding_grants(), 1);
  }
  EXPECT_EQ(coordinator_.State().workers(0).steps(), 1);
}

TEST_F(CoordinatorTest, AReportOfAnotherEpochCountsNothing) {
  StartRun(1, 10);
  EXPECT_TRUE(Step(chief_, 0).granted());
  StepRequest old = MakeStep(chief_, 1);
  old.set_model_epoch(epoch_ - 1);
  const auto reply = AskStep(coordinator_, old, now_);
  ASSERT_THAT(reply, IsOk());
  EXPECT_FALSE(reply->granted());
  EXPECT_EQ(reply->model_epoch(), epoch_);
  EXPECT_EQ(reply->global_step(), 0);
}

TEST_F(CoordinatorTest, AnAbandonedStepReturnsItsGrantAndWakesWhoWaits) {
  StartRun(2, 1);
  EXPECT_TRUE(Step(chief_, 0).granted());
  EXPECT_FALSE(Step(worker_, 0).granted());
  ASSERT_THAT(Watch(worker_, coordinator_.state_version(), absl::Seconds(5)),
              IsOk());
  EXPECT_TRUE(coordinator_.TakeAnswers(now_).empty());
  EXPECT_FALSE(Abandon(chief_, 1).granted());
  EXPECT_EQ(coordinator_.TakeAnswers(now_).size(), 1);
  EXPECT_TRUE(Step(worker_, 0).granted());
  // A late repeat of the abandonment takes nobody's grant.
  Abandon(chief_, 1);
  EXPECT_EQ(coordinator_.outstanding_grants(), 1);
  EXPECT_EQ(Step(worker_, 1).phase(), STOPPING);
}

TEST_F(CoordinatorTest, TheGrantOfALostWorkerReturns) {
  StartRun(2, 1);
  EXPECT_TRUE(Step(worker_, 0).granted());
  EXPECT_FALSE(Step(chief_, 0).granted());
  Pass(kTimeout, {chief_});
  EXPECT_TRUE(coordinator_.State().workers(1).lost());
  EXPECT_TRUE(Step(chief_, 0).granted());
  // It comes back with its step when all are in other hands: not counted.
  EXPECT_EQ(Step(worker_, 1).global_step(), 0);
  EXPECT_FALSE(coordinator_.State().workers(1).lost());
  EXPECT_EQ(Step(chief_, 1).global_step(), 1);
}

TEST_F(CoordinatorTest, TheGrantOfAReplacedIncarnationReturns) {
  StartRun(2, 1);
  EXPECT_TRUE(Step(worker_, 0).granted());
  ASSERT_THAT(Register(MakeSender(1, 555)), IsOk());
  EXPECT_EQ(coordinator_.outstanding_grants(), 0);
  EXPECT_TRUE(Step(chief_, 0).granted());
}

TEST_F(CoordinatorTest, EndsWhenEveryLiveWorkerHasFinished) {
  StartRun(2, 1);
  Step(chief_, 0);
  EXPECT_EQ(Step(chief_, 1).phase(), STOPPING);
  EXPECT_EQ(Finish(worker_).phase(), STOPPING);
  EXPECT_EQ(Finish(worker_).phase(), STOPPING);  // a repeat
  EXPECT_EQ(Finish(chief_).phase(), DONE);
}

TEST_F(CoordinatorTest, PsTaskZeroNeedNotTellItself) {
  StartRun(1, 1);
  ASSERT_THAT(Watch(MakeSender(0, 70, "ps"), 0), IsOk());
  Step(chief_, 0);
  Step(chief_, 1);
  Finish(chief_);
  EXPECT_TRUE(coordinator_.EndIsKnown());
}

TEST_F(CoordinatorTest, TheEndIsKnownWhenEachPsWatchesFromItOn) {
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
TEST_F(CoordinatorTest, WhoComesBackToTheEndHasFinishedIfItsTaskHad) {
  StartRun(2, 1);
  Step(chief_, 0);
  Step(chief_, 1);
  Finish(worker_);
  Pass(kTimeout);
  ASSERT_EQ(coordinator_.phase(), DONE);
  EXPECT_FALSE(Register(MakeSender(0, 555))->state().workers(0).finished());
  EXPECT_TRUE(Register(MakeSender(1, 556))->state().workers(1).finished());
}

TEST_F(CoordinatorTest, AnUnsavedModelIsKeptForTheNextStartOfTheChief) {
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

TEST_F(CoordinatorTest, AnUnsavedModelIsKeptOnlySoLong) {
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

TEST_F(CoordinatorTest, OnlyTheChiefHasAModelToSave) {
  StartRun(2, 1);
  FinishRequest request;
  *request.mutable_sender() = worker_;
  request.set_unsaved(true);
  EXPECT_THAT(coordinator_.Finish(request, now_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is not the chief")));
}

TEST_F(CoordinatorTest, ThePsTasksOfTheEpochAreToldOfTheEnd) {
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
  // What was on the way to a former ps task 0.
  (*commit.mutable_ps_incarnations())[0] = 60;
  EXPECT_THAT(coordinator_.CommitEpoch(commit, now_),
              StatusIs(absl::StatusCode::kAborted));
  step = MakeStep(chief_, 1);
  step.set_ps_incarnation(60);
  EXPECT_FALSE(AskStep(coordinator_, step, now_)->granted());
  EXPECT_EQ(coordinator_.global_step(), 0);
}

TEST_F(CoordinatorTest, WaitsForTheDeadOnlySoLong) {
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

TEST_F(CoordinatorTest, TheChiefMayStopTheJob) {
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

TEST_F(CoordinatorTest, TheChiefMayStopTheJobAndStayAMember) {
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

TEST_F(CoordinatorTest, AWorkerThatLeavesEarlyDoesNotEndTheJob) {
  StartRun(2, 100);
  Finish(worker_, false, "interrupted");
  Finish(chief_, false, "failed");
  EXPECT_EQ(coordinator_.phase(), RUNNING);
}

TEST_F(CoordinatorTest, PositionsAreRestoredAndNewcomersStartAtTheSmallest) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(chief_), IsOk());
  CommitEpochRequest commit = MakeCommit(chief_, 1, 100);
  for (const auto& [index, position] : {std::pair(0, 30), std::pair(1, 20)}) {
    WorkerState* const saved = commit.add_workers();
    saved->mutable_sender()->mutable_task()->set_job("worker");
    saved->mutable_sender()->mutable_task()->set_index(index);
    saved->set_data_position(position);
    saved->set_steps(position);
  }
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  EXPECT_EQ(Register(worker_)->data_position(), 20);
  EXPECT_EQ(Register(MakeSender(2, 102))->data_position(), 20);
  EXPECT_EQ(coordinator_.State().workers(0).data_position(), 30);
}

TEST_F(CoordinatorTest, CollectsStatisticsForTheResult) {
  StartRun(1, 100);
  Step(chief_, 0);
  Step(chief_, 1);
  now_ += absl::Seconds(3);
  Step(chief_, 2);
  const WorkerState state = coordinator_.State().workers(0);
  EXPECT_EQ(state.steps(), 2);
  EXPECT_EQ(state.examples(), 20);
  EXPECT_EQ(state.data_position(), 2);
  EXPECT_EQ(state.last_loss(), 0.5);
  EXPECT_EQ(state.active_s(), 3);
  EXPECT_EQ(state.staleness_sum(), 2);
  EXPECT_EQ(state.staleness_count(), 2);
}

TEST_F(CoordinatorTest, CountsHowOftenEachStalenessOccurs) {
  StartRun(2, 100);
  int64_t step = 0;
  for (const int64_t staleness : {2, 0, 2, 64, 1000}) {
    Step(chief_, 0);
    StepRequest request = MakeStep(chief_, ++step);
    request.set_staleness(staleness);
    ASSERT_THAT(AskStep(coordinator_, request, now_), IsOk());
    // The same report again counts nothing.
    ASSERT_THAT(AskStep(coordinator_, request, now_), IsOk());
  }
  const JobState state = coordinator_.State();
  std::vector<int64_t> expected(65, 0);
  expected[0] = 1;
  expected[2] = expected[64] = 2;
  EXPECT_THAT(state.staleness_counts(), ElementsAreArray(expected));

  const auto begun = Begin(chief_);
  ASSERT_THAT(begun, IsOk());
  ASSERT_THAT(coordinator_.CommitEpoch(
                  MakeCommit(chief_, begun->model_epoch(), 100), now_),
              IsOk());
  EXPECT_EQ(coordinator_.State().staleness_counts_size(), 0);
}

TEST_F(CoordinatorTest, RefusesNumbersOutOfRange) {
  StartRun(1, 100);
  Step(chief_, 0);
  for (const auto& spoil : std::vector<std::function<void(StepRequest&)>>{
           [](StepRequest& r) { r.set_step(-1); },
           [](StepRequest& r) { r.set_examples(-1); },
           [](StepRequest& r) { r.set_examples(11); },
           [](StepRequest& r) { r.set_staleness(-1); },
           [](StepRequest& r) { r.set_data_position(-1); }}) {
    StepRequest request = MakeStep(chief_, 1);
    spoil(request);
    EXPECT_THAT(AskStep(coordinator_, request, now_),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("out of range")));
  }
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

// Random calls of a few workers, with losses, restarts, repeats and
// abandonments, against a plain model of what must hold after each.
class CoordinatorRandomTest : public CoordinatorTest,
                              public testing::WithParamInterface<int> {};

TEST_P(CoordinatorRandomTest, KeepsTheGlobalStepExact) {
  constexpr int kTasks = 4;
  constexpr int64_t kStop = 200;
  std::mt19937 random(GetParam());
  const auto pick = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  struct Task {
    uint64_t incarnation;
    int64_t step = 0;
    bool granted = false;
    bool gave_up = false;  // the newest step
  };
  std::vector<Task> tasks(kTasks);
  StartRun(kTasks, kStop);
  for (int i = 0; i < kTasks; ++i) tasks[i].incarnation = 100 + i;
  std::set<std::tuple<int, uint64_t, int64_t>> reported;
  for (int round = 0; round < 5000 && coordinator_.phase() == RUNNING;
       ++round) {
    const int i = pick(kTasks);
    Task& task = tasks[i];
    const Sender sender = MakeSender(i, task.incarnation);
    switch (pick(12)) {
      case 0:  // restart
        task = Task{static_cast<uint64_t>(1000 + round)};
        ASSERT_THAT(Register(MakeSender(i, task.incarnation)), IsOk());
        break;
      case 1:  // time passes; all others beat
        for (int other = 0; other < kTasks; ++other) {
          if (other == i) continue;
          ASSERT_THAT(Watch(MakeSender(other, tasks[other].incarnation), 0),
                      IsOk());
        }
        Pass(kTimeout / 2);
        if (coordinator_.State().workers(i).lost()) task.granted = false;
        break;
      case 2:  // a repeat of the last report
        task.granted = Step(sender, task.gave_up ? 0 : task.step).granted();
        break;
      case 3:  // gives its step up
        if (!task.granted) break;
        ++task.step;
        Abandon(sender, task.step);
        task.granted = false;
        task.gave_up = true;
        break;
      default:
        if (!task.granted) {
          task.granted = Step(sender, 0).granted();
          break;
        }
        ++task.step;
        task.gave_up = false;
        reported.emplace(i, task.incarnation, task.step);
        task.granted = Step(sender, task.step).granted();
    }
    int64_t granted = 0;
    for (const Task& one : tasks) granted += one.granted ? 1 : 0;
    ASSERT_EQ(coordinator_.global_step(),
              static_cast<int64_t>(reported.size()));
    ASSERT_LE(coordinator_.global_step() + coordinator_.outstanding_grants(),
              kStop);
    ASSERT_GE(coordinator_.outstanding_grants(), granted);
    ASSERT_LE(coordinator_.outstanding_grants(), kTasks);
  }
  // The run comes to its end, exactly.
  EXPECT_EQ(coordinator_.global_step(), kStop);
  EXPECT_EQ(coordinator_.outstanding_grants(), 0);
  EXPECT_EQ(coordinator_.phase(), STOPPING);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CoordinatorRandomTest, testing::Range(1, 21));

}  // namespace
}  // namespace muster
