// How the machine waits for other workers' steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/process/exit_code.h"
#include "tests/worker/session/session_machine_fixture.h"
#include "worker/session/session_machine.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kStepWait = absl::Seconds(1);
constexpr absl::Duration kSoon = absl::Milliseconds(10);

class SessionMachineStepsTest : public SessionMachineTest {
 protected:
  SessionMachineStepsTest() { step_wait_ = kStepWait; }

  // A refusal that names worker 2.
  StepReply Waiting() {
    StepReply reply = Reply(false, 1);
    TaskId* other = reply.add_waiting_for();
    other->set_job("worker");
    other->set_index(2);
    reply.set_waiting_why("to push its gradient of step 120");
    return reply;
  }
  StepReply TooFew() {
    StepReply reply = Waiting();
    reply.set_too_few_replicas(true);
    return reply;
  }
  void Answer(const StepReply& reply, absl::Duration after) {
    now_ += after;
    Send(StepEvent{reply});
  }
};

TEST_F(SessionMachineStepsTest, AQuestionMayWaitForOthers) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->max_wait, kStepWait);
}

TEST_F(SessionMachineStepsTest, AnUnfinishedStepIsResumedInTheSameEpoch) {
  RunToFirstStep(/*chief=*/false);
  const TrainEvent unfinished{absl::UnavailableError("reset"),
                              /*may_resume=*/true};
  Send(unfinished);
  for (int tries = 0; tries < 2; ++tries) {
    ASSERT_NE(Get<SendHello>(), nullptr);
    Send(HelloEvent{0, Shard(7, 1)});
    EXPECT_EQ(Get<SendStep>(), nullptr) << "a step is under way";
    Pass(absl::Seconds(1));
    ASSERT_NE(Get<ResumeStep>(), nullptr);
    if (tries == 0) Send(unfinished);
  }
  StepReport report;
  report.examples = 128;
  Send(TrainEvent{report});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 1);
  EXPECT_FALSE(Get<SendStep>()->report.abandoned);
  EXPECT_EQ(Get<SendStep>()->report.examples, 128);
}

// Everybody answers, and each step fails.
TEST_F(SessionMachineStepsTest, StepsThatKeepFailing_PauseLongerAndAreSaid) {
  step_wait_ = absl::ZeroDuration();
  RunToFirstStep(/*chief=*/false);
  const absl::Time begin = now_;
  std::vector<std::string> lines;
  int tries = 0;
  while (Get<Exit>() == nullptr && tries < 1000) {
    ASSERT_NE(Get<TrainStep>(), nullptr);
    ++tries;
    Send(TrainEvent{absl::UnavailableError("no memory")});
    if (const std::string line = Said("no memory"); !line.empty()) {
      lines.push_back(line);
    }
    if (Get<Exit>() != nullptr) break;
    ASSERT_NE(Get<SendHello>(), nullptr);
    Send(HelloEvent{0, Shard(7, 1)});
    while (Get<SendStep>() == nullptr) Pass(absl::Milliseconds(50));
    // The step is given back, and another one is granted.
    Send(StepEvent{Reply(false, 1)});
    ASSERT_NE(Get<SendStep>(), nullptr);
    Send(StepEvent{Reply(true, 1)});
  }
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
  EXPECT_LE(tries, 70) << "in the 60 s of max_wait";
  EXPECT_GE(now_ - begin, absl::Seconds(60));
  ASSERT_GE(lines.size(), 5);
  EXPECT_LE(lines.size(), 8);
  EXPECT_EQ(lines.front(),
            "waiting for a step to succeed (no memory); 1 s so far");
}

TEST_F(SessionMachineStepsTest, AStepThatSucceeds_EndsTheWaitForOne) {
  step_wait_ = absl::ZeroDuration();
  RunToFirstStep(/*chief=*/false);
  for (int i = 0; i < 8; ++i) {
    Send(TrainEvent{absl::UnavailableError("no memory")});
    Send(HelloEvent{0, Shard(7, 1)});
    while (Get<SendStep>() == nullptr) Pass(absl::Milliseconds(50));
    Send(StepEvent{Reply(false, 1)});
    Send(StepEvent{Reply(true, 1)});
  }
  ASSERT_NE(Get<TrainStep>(), nullptr);
  Send(TrainEvent{StepReport()});
  EXPECT_EQ(Said("waiting"), "no longer waiting");
  Send(StepEvent{Reply(true, 1)});
  ASSERT_NE(Get<TrainStep>(), nullptr);
  now_ += absl::Seconds(6);
  Send(TrainEvent{StepReport()});
  Send(StepEvent{Reply(true, 1)});
  // The pauses begin anew.
  Send(TrainEvent{absl::UnavailableError("no memory")});
  Send(HelloEvent{0, Shard(7, 1)});
  Pass(absl::Milliseconds(50));
  EXPECT_NE(Get<SendStep>(), nullptr);
}

TEST_F(SessionMachineStepsTest, AnotherEpochEndsAnUnfinishedStep) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{absl::UnavailableError("reset"), /*may_resume=*/true});
  Send(HelloEvent{0, Shard(8, 2)});
  Pass(absl::Seconds(1));
  Send(RegisterEvent{Registered(State(RUNNING, 2, {8}))});
  EXPECT_EQ(Get<ResumeStep>(), nullptr);
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 0);
}

// No other step is begun at the end of a job while one may be half there.
TEST_F(SessionMachineStepsTest, AJobThatStopsWaitsForAnUnfinishedStep) {
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{absl::UnavailableError("reset"), /*may_resume=*/true});
  Send(WatchEvent{State(STOPPING, 1, {7})});
  Send(HelloEvent{0, Shard(7, 1)});
  Pass(absl::Seconds(1));
  EXPECT_EQ(Get<RunFinal>(), nullptr);
  ASSERT_NE(Get<ResumeStep>(), nullptr);
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  Send(StepEvent{Reply(false, 1, STOPPING)});
  EXPECT_NE(Get<RunFinal>(), nullptr);
}

TEST_F(SessionMachineStepsTest, InAsyncNoQuestionWaits) {
  step_wait_ = absl::ZeroDuration();
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->max_wait, absl::ZeroDuration());
}

TEST_F(SessionMachineStepsTest, NamesWhomItWaitsForAfterASecond) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  Answer(Waiting(), kStepWait);
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_EQ(Get<Say>()->text,
            "waiting for /job:worker/task:2 to push its gradient of step 120; "
            "1 s so far");
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->report.step, 0);
  int lines = 0;
  for (int second = 2; second <= 20; ++second) {
    Answer(Waiting(), kStepWait);
    if (Get<Say>() != nullptr) ++lines;
    ASSERT_NE(Get<SendStep>(), nullptr) << second;
  }
  EXPECT_EQ(lines, 1);
  Answer(Reply(true, 1), kSoon);
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_EQ(Get<Say>()->text, "no longer waiting");
  EXPECT_NE(Get<TrainStep>(), nullptr);
}

TEST_F(SessionMachineStepsTest, SaysWhyWhenThereIsNobodyToName) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  StepReply few = Reply(false, 1);
  few.set_waiting_why("more workers to come: 1 there");
  Answer(few, kStepWait);
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_EQ(Get<Say>()->text,
            "waiting for more workers to come: 1 there; 1 s so far");
}

TEST_F(SessionMachineStepsTest, AShortWaitIsNotSaid) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  Answer(Reply(true, 1), kStepWait / 2);
  EXPECT_EQ(Get<Say>(), nullptr);
  EXPECT_NE(Get<TrainStep>(), nullptr);
}

TEST_F(SessionMachineStepsTest, ARefusalThatHasNotWaitedIsNotRepeatedAtOnce) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  Answer(Waiting(), kSoon);
  EXPECT_EQ(Get<SendStep>(), nullptr);
  Pass(kSoon);
  EXPECT_EQ(Get<SendStep>(), nullptr);
  Pass(absl::Seconds(1));
  EXPECT_NE(Get<SendStep>(), nullptr);
}

TEST_F(SessionMachineStepsTest, NewsEndAWaitAndTheNextBeginsAtOnce) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  StepReply news = Waiting();
  news.set_state_version(version_ + 1);
  Answer(news, kSoon);
  EXPECT_NE(Get<SendStep>(), nullptr);
  // The same again is no news.
  Answer(news, kSoon);
  EXPECT_EQ(Get<SendStep>(), nullptr);
}

TEST_F(SessionMachineStepsTest, NewsThatWatchHasToldBeforeAreNewsToo) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  Send(WatchEvent{State(RUNNING, 1, {7})});
  Answer(Waiting(), kSoon);
  EXPECT_NE(Get<SendStep>(), nullptr);
}

TEST_F(SessionMachineStepsTest, GivesUpAWaitThatTakesTooLong) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  for (int second = 1; second < 60; ++second) {
    Answer(Waiting(), kStepWait);
    ASSERT_EQ(Get<Exit>(), nullptr) << second;
  }
  Answer(Waiting(), kStepWait);
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
  EXPECT_THAT(Get<Exit>()->text, HasSubstr("/job:worker/task:2 to push"));
}

TEST_F(SessionMachineStepsTest, AChiefThatWaitsStillNoticesARestartedPs) {
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{StepReport()});
  Answer(Waiting(), kStepWait);
  ASSERT_NE(Get<SendStep>(), nullptr);
  Answer(Waiting(), kStepWait);
  ASSERT_NE(Get<SendHello>(), nullptr);
  EXPECT_EQ(Get<SendStep>(), nullptr);
  Send(HelloEvent{0, Shard(7, 1)});
  EXPECT_NE(Get<SendStep>(), nullptr);
}

TEST_F(SessionMachineStepsTest, ASignalledWorkerDoesNotWaitForOthers) {
  RunToFirstStep(/*chief=*/false);
  Send(SignalEvent{15});
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_EQ(Get<SendStep>()->max_wait, absl::ZeroDuration());
}

TEST_F(SessionMachineStepsTest, AWorkerOfTooFewEndsRetryable) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  Answer(TooFew(), kSoon);
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_FALSE(Get<SendFinish>()->stop_job);
  Send(FinishEvent{FinishReply()});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
  EXPECT_EQ(Get<Exit>()->text,
            "too few replicas to go on: /job:worker/task:2 to push its "
            "gradient of step 120");
}

TEST_F(SessionMachineStepsTest, AChiefOfTooFewSavesAndEndsTheJob) {
  RunToFirstStep(/*chief=*/true);
  Send(TrainEvent{StepReport()});
  Answer(TooFew(), kSoon);
  ASSERT_NE(Get<RunFinal>(), nullptr);
  EXPECT_FALSE(Get<RunFinal>()->completed);
  Send(FinalEvent{absl::UnavailableError("ps 1 is away")});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  EXPECT_TRUE(Get<SendFinish>()->stop_job);
  EXPECT_THAT(Get<SendFinish>()->reason, HasSubstr("too few replicas"));
  Send(FinishEvent{FinishReply()});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
}

TEST_F(SessionMachineStepsTest, NamesThePsThatDoesNotAnswer) {
  step_wait_ = absl::ZeroDuration();
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  ASSERT_NE(Get<SendStep>(), nullptr);
  EXPECT_LE(machine_->next_wakeup(), now_ + absl::Seconds(2));
  Pass(absl::Seconds(1));
  EXPECT_EQ(Get<Say>(), nullptr);
  Pass(absl::Seconds(1));
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_THAT(
      Get<Say>()->text,
      HasSubstr("at host0:2222 to answer the question for a step; 2 s"));
  Pass(absl::Seconds(9));
  EXPECT_EQ(Get<Say>(), nullptr);
  Answer(Reply(true, 1), absl::Seconds(1));
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_EQ(Get<Say>()->text, "no longer waiting");
  EXPECT_NE(Get<TrainStep>(), nullptr);
}

TEST_F(SessionMachineStepsTest, AQuestionThatMayWaitIsNotLateMeanwhile) {
  RunToFirstStep(/*chief=*/false);
  Send(TrainEvent{StepReport()});
  Pass(absl::Seconds(2));
  EXPECT_EQ(Get<Say>(), nullptr);
  Pass(kStepWait / 2);
  ASSERT_NE(Get<Say>(), nullptr);
  EXPECT_THAT(Get<Say>()->text, HasSubstr("to answer the question for a step"));
}

TEST_F(SessionMachineStepsTest, WhoseChiefHasEndedForTooFewEndsRetryableToo) {
  RunToFirstStep(/*chief=*/false);
  JobState state = State(STOPPING, 1, {7});
  state.set_stop_reason("failed: too few replicas to go on: ...");
  Send(WatchEvent{state});
  Send(TrainEvent{StepReport()});
  Send(StepEvent{Reply(false, 1, STOPPING)});
  ASSERT_NE(Get<SendFinish>(), nullptr);
  Send(FinishEvent{FinishReply()});
  ASSERT_NE(Get<Exit>(), nullptr);
  EXPECT_EQ(Get<Exit>()->code, kExitRetryable);
}

TEST_F(SessionMachineStepsTest, TheChiefSaysOnceThatAnUpdateHasOtherRows) {
  for (const bool chief : {true, false}) {
    RunToFirstStep(chief);
    JobState state = State(RUNNING, 1, {7});
    state.mutable_update()->set_full_workers(3);
    state.mutable_update()->set_total_workers(3);
    const auto tell = [&](int64_t workers) {
      state.set_state_version(++version_);
      state.mutable_update()->set_workers(workers);
      state.mutable_update()->set_rows(workers * 10);
      Send(WatchEvent{state});
      return Said("an update has");
    };
    EXPECT_EQ(tell(3), "");
    EXPECT_EQ(tell(2), chief ? "an update has 20 rows, of 2 of 3 workers" : "");
    EXPECT_EQ(tell(2), "");
    EXPECT_EQ(tell(3), chief ? "an update has 30 rows, of 3 of 3 workers" : "");
  }
}

}  // namespace
}  // namespace muster
