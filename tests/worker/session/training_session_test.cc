#include "worker/session/training_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"
#include "tests/testing/reported_lines.h"
#include "tests/worker/session/fake_coordination.h"
#include "worker/hook/nan_guard.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSteps = 5;
constexpr int32_t kIndex = 4;

// A shard that answers Hello; the session itself asks it for nothing else.
struct FakeShard {
  void Hello(const HelloRequest& request, ReplyCallback<HelloReply> done) {
    last_hello = request;
    if (!refusal.ok()) return done(refusal);
    HelloReply reply;
    reply.set_protocol_version(protocol_version);
    reply.set_ps_incarnation(7);
    done(reply);
  }

  HelloRequest last_hello;
  absl::Status refusal;
  int32_t protocol_version = kProtocolVersion;
};

class FakeSteps : public StepRunner {
 public:
  absl::Status Enter(const EnterEpoch& epoch) override {
    entered.push_back(epoch.model_epoch);
    return absl::OkStatus();
  }
  absl::StatusOr<StepReport> Run(int64_t step, const StepGrant& grant,
                                 const BeforePush& before_push) override {
    step_ = step;
    if (step == fail_at) return failure;
    StepReport report;
    report.loss = loss;
    report.round = grant.token.round();
    report.rows = grant.leases[0];
    ahead.push_back(grant.leases.size() - 1);
    if (passes) {
      report.pass.emplace();
      report.pass->set_pass(step);
    }
    report.correct = correct;
    report.has_loss = has_loss;
    report.examples = 128;
    ComputedStep computed;
    computed.loss = loss;
    computed.has_loss = has_loss;
    computed.correct = report.correct;
    computed.examples = report.examples;
    const auto decision = before_push(computed);
    if (!decision.ok()) return decision.status();
    report.abandoned = *decision == PushDecision::kRefuse;
    report.skipped = report.abandoned;
    return report;
  }
  bool may_resume() const override { return resumes && step_ == fail_at; }
  absl::StatusOr<StepReport> Resume() override {
    fail_at = -1;
    StepReport report;
    report.examples = 128;
    return report;
  }

  void BringLast() override { on_bring(); }

  std::function<void()> on_bring = [] {};
  // A step that fails may be resumed.
  bool resumes = false;
  // Its rows are a stream's.
  bool passes = false;
  std::vector<int64_t> entered;
  // The leases beside each step's.
  std::vector<size_t> ahead;
  double loss = 0.5;
  bool has_loss = true;
  int64_t correct = 96;
  int64_t fail_at = -1;
  absl::Status failure;

 private:
  int64_t step_ = 0;
};

class FakeSource : public ModelSource {
 public:
  LoadEvent Load(const LoadModel&) override {
    saves_before_load = saves_waited_for;
    if (!failure.ok()) return LoadEvent{failure, true};
    LoadedModel model;
    model.initialized = true;
    model.ledger = ledger;
    model.evaluations = evaluations;
    return LoadEvent{model};
  }
  int64_t SavedEpoch() override { return saved_epoch; }
  EvaluationHistory evaluations;
  std::optional<RowLedger> ledger;
  absl::Status failure;
  int64_t saved_epoch = 0;
  // How often it was waited for saves, now and at the load.
  int saves_waited_for = 0;
  int saves_before_load = 0;
};

// Writes down in which order it was called.
class RecordingHook : public Hook {
 public:
  absl::Status AfterEnter(const EpochRecord& epoch) override {
    calls.push_back(epoch.initialized ? "enter new"
                    : epoch.attached  ? "enter attached"
                                      : "enter");
    return absl::OkStatus();
  }
  absl::Status AfterStep(const StepRecord& step) override {
    calls.push_back(absl::StrCat("step ", step.global_step));
    if (after_step != nullptr) after_step(step);
    return absl::OkStatus();
  }
  absl::Status AtEnd(const EndRecord& end) override {
    calls.push_back(absl::StrCat("end ", end.global_step));
    return at_end;
  }
  std::vector<std::string> calls;
  std::function<void(const StepRecord&)> after_step;
  absl::Status at_end;
};

// Takes an evaluation at the third step.
class EvaluatingHook : public Hook {
 public:
  absl::Status AfterEnter(const EpochRecord& epoch) override {
    entered = epoch.evaluations.global_step();
    return absl::OkStatus();
  }
  absl::Status AfterWait(int64_t global_step) override {
    waits.push_back(global_step);
    return after_wait;
  }
  absl::Status AfterStep(const StepRecord& step) override {
    if (step.global_step == 3) history.set_global_step(3);
    return absl::OkStatus();
  }
  int64_t entered = -1;
  std::vector<int64_t> waits;
  absl::Status after_wait;
  EvaluationHistory history;
};

class TrainingSessionTest : public ::testing::Test {
 protected:
  std::unique_ptr<TrainingSession> Make() {
    TrainingSession::Options options;
    options.machine.self.set_job("worker");
    options.sender.mutable_task()->set_index(kIndex);
    options.is_numbered = is_numbered_;
    options.machine.chief = true;
    options.machine.ps_addresses = {"host:1"};
    options.machine.model_fingerprint = 9;
    options.sender.set_incarnation(3);
    options.ps_addresses[0] = "host:1";
    options.training_text = "seed: 1";
    options.data.resize(2);
    options.data[1].set_name("rows");
    options.saves = true;
    options.checkpoint.set_every_steps(40);
    options.checkpoint.set_every_seconds(2.5);
    options.stop = options.machine.goal.stop = stop_;
    options.step_rows = 32;
    options.leases_ahead = 2;
    TrainingSession::Parts parts;
    parts.clock = &clock_;
    parts.hello = [this](int, const HelloRequest& request, auto done) {
      shard_.Hello(request, std::move(done));
    };
    parts.on_enter = [](const EnterEpoch&) {};
    parts.coordination = &coordination_;
    parts.steps = &steps_;
    parts.source = &source_;
    parts.hooks = hooks_;
    parts.reporter = said_.reporter();
    parts.save_now = [](const std::function<void(const absl::Status&)>& done) {
      done(absl::OkStatus());
    };
    parts.wait_for_saves = [this] { ++source_.saves_waited_for; };
    parts.set_serving = [this](bool serving) { serving_ = serving; };
    parts.evaluations = [this] { return evaluating_.history; };
    parts.traffic = [] {
      Traffic traffic;
      traffic.set_pushes(7);
      return traffic;
    };
    parts.write_result = [this](const EndRecord& end) {
      results_.push_back(end.global_step);
      return result_status_;
    };
    auto session = std::make_unique<TrainingSession>(options, std::move(parts));
    session_ = session.get();
    return session;
  }

  MonotonicClock clock_;
  FakeCoordination coordination_{kSteps};
  FakeShard shard_;
  FakeSteps steps_;
  FakeSource source_;
  RecordingHook recorder_;
  bool is_numbered_ = false;
  // The session that Make returned.
  TrainingSession* session_ = nullptr;
  ReportedLines refusals_;
  NanGuard guard_{{"/job:worker/task:0", /*max_refusals=*/2,
                   [this](absl::string_view reason, const absl::Status& why) {
                     session_->StopJob(reason, why);
                   },
                   refusals_.reporter()}};
  EvaluatingHook evaluating_;
  std::vector<Hook*> hooks_{&guard_, &recorder_, &evaluating_};
  ReportedLines said_;
  std::vector<int64_t> results_;
  absl::Status result_status_;
  bool serving_ = false;
  StopSpec stop_;
};

TEST_F(TrainingSessionTest, TrainsToTheEnd) {
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_THAT(recorder_.calls,
              ElementsAre("enter new", "step 1", "step 2", "step 3", "step 4",
                          "step 5", "end 5"));
  EXPECT_THAT(results_, ElementsAre(5));
  EXPECT_EQ(coordination_.finished().reason(), "done");
  EXPECT_EQ(coordination_.finished().traffic().pushes(), 7);
  EXPECT_FALSE(serving_);
}

TEST_F(TrainingSessionTest, LastValues_AreBroughtOnceBehindTheLastSave) {
  steps_.on_bring = [this] { recorder_.calls.push_back("bring"); };
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_THAT(recorder_.calls,
              ElementsAre("enter new", "step 1", "step 2", "step 3", "step 4",
                          "step 5", "end 5", "bring"));
}

TEST_F(TrainingSessionTest, LastValues_AreNotBroughtAfterASignal) {
  steps_.on_bring = [] { ADD_FAILURE() << "brought"; };
  recorder_.after_step = [this](const StepRecord&) {
    session_->RequestStop(15);
  };
  EXPECT_EQ(Make()->Run(), 143);
}

TEST_F(TrainingSessionTest, LastValues_AreNotBroughtAfterAFailure) {
  steps_.on_bring = [] { ADD_FAILURE() << "brought"; };
  steps_.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Make()->Run(), kExitFailed);
}

TEST_F(TrainingSessionTest, Leave_EndsAJobOfOneAsDone) {
  recorder_.after_step = [this](const StepRecord& step) {
    if (step.global_step == 2) session_->Leave();
  };
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_EQ(coordination_.State().stop_reason(), "done");
  EXPECT_EQ(coordination_.State().global_step(), 3);
  EXPECT_TRUE(coordination_.steps_reported().back().is_done());
  EXPECT_THAT(results_, ElementsAre(3));
}

TEST_F(TrainingSessionTest, FiguresThatAStepDoesNotHave_AreNoneForHooks) {
  steps_.loss = std::numeric_limits<double>::quiet_NaN();
  steps_.has_loss = false;
  steps_.correct = -1;
  int64_t steps = 0;
  recorder_.after_step = [&steps](const StepRecord& step) {
    ++steps;
    EXPECT_FALSE(step.has_loss);
    EXPECT_TRUE(std::isnan(step.accuracy));
  };
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_EQ(steps, kSteps);
  EXPECT_THAT(refusals_.lines(), IsEmpty());
}

TEST_F(TrainingSessionTest, IntroducesItselfCompletely) {
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_EQ(shard_.last_hello.sender().incarnation(), 3);
  EXPECT_EQ(shard_.last_hello.ps_addresses().at(0), "host:1");
  EXPECT_GT(shard_.last_hello.protocol_version(), 0);
  EXPECT_EQ(coordination_.registered().training_text(), "seed: 1");
  ASSERT_EQ(coordination_.registered().data_size(), 2);
  EXPECT_EQ(coordination_.registered().data(1).name(), "rows");
  EXPECT_EQ(coordination_.committed().ps_incarnations().at(0), 7);
}

TEST_F(TrainingSessionTest, NumberedTask_SaysTheHighestNumberThatItKnows) {
  is_numbered_ = true;
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_TRUE(coordination_.registered().is_numbered());
  EXPECT_EQ(coordination_.registered().highest_index(), kIndex);
}

TEST_F(TrainingSessionTest, AfterARestartOfPs0_TheHighestNumberIsSaid) {
  coordination_.SetHighestIndex(6);
  recorder_.after_step = [this](const StepRecord& step) {
    if (step.global_step != 2) return;
    coordination_.FailWatch(WithReason(absl::FailedPreconditionError("restart"),
                                       ErrorReason::kNotRegistered));
  };
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_FALSE(coordination_.registered().is_numbered());
  EXPECT_EQ(coordination_.registered().highest_index(), 6);
}

TEST_F(TrainingSessionTest, EvaluationsOfARestore_AreCommittedAndComeBack) {
  source_.evaluations.set_global_step(40);
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_EQ(coordination_.committed().evaluations().global_step(), 40);
  EXPECT_EQ(evaluating_.entered, 40);
}

TEST_F(TrainingSessionTest, AnEvaluation_GoesWithTheNextQuestionForAStep) {
  EXPECT_EQ(Make()->Run(), kExitDone);
  std::vector<int64_t> reported;
  for (const StepRequest& request : coordination_.steps_reported()) {
    reported.push_back(request.evaluations().global_step());
  }
  EXPECT_THAT(reported, ElementsAre(0, 0, 0, 0, 3, 3));
  EXPECT_EQ(coordination_.steps_reported()[4].step(), 4);
}

TEST_F(TrainingSessionTest, Step_AsksForItsRowsAndReportsThoseOfItsLease) {
  steps_.passes = true;
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_THAT(steps_.ahead, ElementsAre(2, 2, 2, 2, 2));
  const std::vector<StepRequest> asked = coordination_.steps_reported();
  ASSERT_THAT(asked, SizeIs(6));
  EXPECT_FALSE(asked[0].has_rows() && asked[0].rows().ranges_size() > 0);
  EXPECT_FALSE(asked[0].has_pass());
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(asked[i].step_rows(), 32);
    EXPECT_EQ(asked[i].leases_ahead(), 2);
  }
  ASSERT_EQ(asked[3].rows().ranges_size(), 1);
  EXPECT_EQ(asked[3].rows().ranges(0).first(), 64);
  EXPECT_EQ(asked[3].rows().ranges(0).rows(), 32);
  EXPECT_EQ(asked[3].pass().pass(), 3);
  EXPECT_FALSE(asked[3].skipped());
}

TEST_F(TrainingSessionTest, RefusedStep_IsReportedAsSkipped) {
  steps_.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Make()->Run(), kExitFailed);
  const StepRequest report = coordination_.steps_reported()[1];
  EXPECT_TRUE(report.abandoned());
  EXPECT_TRUE(report.skipped());
  EXPECT_EQ(report.rows().ranges_size(), 1);
}

TEST_F(TrainingSessionTest, LedgerOfARestore_IsCommitted) {
  source_.ledger.emplace();
  source_.ledger->set_front(400);
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_EQ(coordination_.committed().ledger().front(), 400);
  EXPECT_EQ(coordination_.committed().batch_size(), 32);
}

TEST_F(TrainingSessionTest, NewModel_HasNoLedger) {
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_FALSE(coordination_.committed().has_ledger());
}

TEST_F(TrainingSessionTest, EndOfEpochs_SaysHowOftenEachRowWasTrainedOn) {
  stop_.set_epochs(2);
  coordination_.SetRows(/*epoch_rows=*/80, /*done=*/160);
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_THAT(said_.lines(), Contains(HasSubstr("160 examples were trained on, "
                                                "2 epochs of 80")));
}

TEST_F(TrainingSessionTest, GrantWithoutALease_IsAnErrorThatSaysSo) {
  coordination_.leases_rows = false;
  EXPECT_EQ(Make()->Run(), kExitFailed);
  EXPECT_THAT(steps_.ahead, IsEmpty());
  EXPECT_THAT(said_.errors(),
              ElementsAre(HasSubstr("granted a step without a lease of rows")));
}

TEST_F(TrainingSessionTest, AGrantWithoutAReport_IsAWaitThatIsOver) {
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_THAT(evaluating_.waits, ElementsAre(0)) << "the first question";
}

TEST_F(TrainingSessionTest, AnErrorAfterAWait_EndsTheTraining) {
  evaluating_.after_wait = absl::InternalError("no wait");
  EXPECT_EQ(Make()->Run(), kExitFailed);
}

// ps task 0 waits for a lost chief after one such interval.
TEST_F(TrainingSessionTest, CommitsHowOftenItSaves) {
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_TRUE(coordination_.committed().saves());
  EXPECT_EQ(coordination_.committed().save_every_steps(), 40);
  EXPECT_EQ(coordination_.committed().save_every_seconds(), 2.5);
}

TEST_F(TrainingSessionTest, HooksAreToldOfAnEpochThatWentOnWithoutIt) {
  CommitEpochRequest commit;
  commit.set_model_epoch(4);
  commit.set_fingerprint(9);
  (*commit.mutable_ps_incarnations())[0] = 7;
  coordination_.Call(kCommitEpochCall, commit, absl::InfiniteFuture(),
                     [](const absl::StatusOr<CommitEpochReply>&) {});
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_EQ(recorder_.calls.front(), "enter attached");
}

TEST_F(TrainingSessionTest, BeginsALargerEpochThanAnyThatWasSaved) {
  source_.saved_epoch = 6;
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_EQ(coordination_.committed().model_epoch(), 7);
}

// One message had brought the count there.
TEST_F(TrainingSessionTest, ADamagedEpochOfACheckpointIsNotCountedOnFrom) {
  source_.saved_epoch = 999'999'999'999'990;
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_EQ(coordination_.committed().model_epoch(), 1);
  EXPECT_THAT(said_.errors(), ElementsAre(HasSubstr("no count of restores")));
}

// Else the steps of a save that ends behind the load were reported as saved,
// and given up.
TEST_F(TrainingSessionTest, LoadsNothingWhileACheckpointIsBeingWritten) {
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_EQ(source_.saves_before_load, 1);
}

TEST_F(TrainingSessionTest, NonFiniteLossEndsItBeforeThePush) {
  steps_.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Make()->Run(), kExitFailed);
  EXPECT_THAT(refusals_.lines(), ElementsAre(HasSubstr("1 of 2 in a row")));
  EXPECT_THAT(said_.errors(), ElementsAre(HasSubstr("loss is nan")));
  EXPECT_EQ(coordination_.State().stop_reason(), "non_finite");
  EXPECT_EQ(coordination_.State().global_step(), 0);
  // Evaluated all the same, but no step was one.
  EXPECT_THAT(recorder_.calls, ElementsAre("enter new", "end 0"));
  EXPECT_THAT(results_, ElementsAre(0));
}

TEST_F(TrainingSessionTest, AHookEndsTheJobAfterItsStep) {
  recorder_.after_step = [this](const StepRecord& step) {
    if (step.step == 2) session_->StopJob("target_accuracy", absl::OkStatus());
  };
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_THAT(recorder_.calls,
              ElementsAre("enter new", "step 1", "step 2", "end 2"));
  EXPECT_EQ(coordination_.State().stop_reason(), "target_accuracy");
  EXPECT_THAT(said_.lines(),
              Contains(HasSubstr("ends at step=2: target_accuracy")));
  EXPECT_THAT(results_, ElementsAre(2));
}

TEST_F(TrainingSessionTest, HooksSeeTheStepsAccuracy) {
  std::vector<double> accuracies;
  recorder_.after_step = [&accuracies](const StepRecord& step) {
    accuracies.push_back(step.accuracy);
  };
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_THAT(accuracies, Each(0.75));
}

TEST_F(TrainingSessionTest, IsNotReadyFromTheSignalOn) {
  recorder_.after_step = [this](const StepRecord& step) {
    if (step.step != 2) return;
    EXPECT_TRUE(serving_);
    session_->RequestStop(15);
    EXPECT_FALSE(serving_);
  };
  EXPECT_EQ(Make()->Run(), 143);
  EXPECT_FALSE(serving_);
  EXPECT_EQ(coordination_.State().stop_reason(), "interrupted");
}

// It waits for 6 s only, and the evaluation may take longer. The step that the
// chief has been granted already goes before the save.
TEST_F(TrainingSessionTest, ALongHookGivesWayToTheSaveOfAPsThatEnds) {
  recorder_.after_step = [this](const StepRecord& step) {
    EXPECT_EQ(session_->MayGoOn(), step.step != 3);
    EXPECT_THAT(coordination_.saves_reported(), SizeIs(step.step > 3 ? 1 : 0));
    if (step.step != 2) return;
    coordination_.AskToSave();
    EXPECT_FALSE(session_->MayGoOn());
  };
  EXPECT_EQ(Make()->Run(), kExitDone);
  EXPECT_EQ(coordination_.State().global_step(), kSteps);
}

TEST_F(TrainingSessionTest, ALongHookIsToldOfASignal) {
  recorder_.after_step = [this](const StepRecord&) {
    EXPECT_TRUE(session_->MayGoOn());
    session_->RequestStop(15);
    EXPECT_FALSE(session_->MayGoOn());
  };
  EXPECT_EQ(Make()->Run(), 143);
  // The step that was granted meanwhile is not begun.
  EXPECT_EQ(coordination_.State().global_step(), 1);
}

TEST_F(TrainingSessionTest, FailedFinalSaveStillWritesTheResult) {
  recorder_.at_end = absl::ResourceExhaustedError("final save: disk full");
  EXPECT_EQ(Make()->Run(), kExitRetryable);
  EXPECT_THAT(results_, ElementsAre(5));
  EXPECT_THAT(said_.errors(), ElementsAre(HasSubstr("final save: disk full")));
  EXPECT_EQ(coordination_.finished().reason(), "done");
  EXPECT_TRUE(coordination_.finished().unsaved());
}

TEST_F(TrainingSessionTest, SaysBothIfTheResultCannotBeWrittenEither) {
  recorder_.at_end = absl::ResourceExhaustedError("final save: disk full");
  result_status_ = absl::ResourceExhaustedError("result.json: disk full");
  EXPECT_EQ(Make()->Run(), kExitRetryable);
  EXPECT_THAT(said_.errors(), ElementsAre(HasSubstr("result.json: disk full"),
                                          HasSubstr("final save: disk full")));
}

TEST_F(TrainingSessionTest, AbandonsAFencedStepAndTakesAnother) {
  steps_.fail_at = 2;
  steps_.failure = absl::AbortedError("fenced: moved on");
  EXPECT_EQ(Make()->Run(), kExitDone);
  std::vector<int64_t> abandoned;
  for (const StepRequest& request : coordination_.steps_reported()) {
    if (request.abandoned()) abandoned.push_back(request.step());
  }
  EXPECT_THAT(abandoned, ElementsAre(2));
  EXPECT_THAT(results_, ElementsAre(5));
}

TEST_F(TrainingSessionTest, AStepThatMayBeResumedIsReportedAsItself) {
  steps_.fail_at = 2;
  steps_.failure = absl::UnavailableError("push of step 2: no answer");
  steps_.resumes = true;
  EXPECT_EQ(Make()->Run(), kExitDone);
  for (const StepRequest& request : coordination_.steps_reported()) {
    EXPECT_FALSE(request.abandoned()) << request.step();
    EXPECT_LE(request.step(), 5);
  }
  EXPECT_THAT(results_, ElementsAre(5));
}

TEST_F(TrainingSessionTest, UnusableCheckpointExitsWithThree) {
  source_.failure = absl::FailedPreconditionError("conv1/weights differs");
  EXPECT_EQ(Make()->Run(), kExitBadCheckpoint);
  EXPECT_THAT(said_.errors(), ElementsAre(HasSubstr("conv1/weights differs")));
}

TEST_F(TrainingSessionTest, OtherClusterExitsWithTwo) {
  shard_.refusal = absl::FailedPreconditionError("of another cluster");
  EXPECT_EQ(Make()->Run(), kExitBadConfig);
  EXPECT_THAT(said_.errors(), ElementsAre(HasSubstr("of another cluster")));
}

TEST_F(TrainingSessionTest, PsOfAnotherProtocolExitsWithTwo) {
  shard_.protocol_version = kProtocolVersion + 1;
  EXPECT_EQ(Make()->Run(), kExitBadConfig);
  EXPECT_EQ(shard_.last_hello.protocol_version(), kProtocolVersion);
  const auto speaks = [](int32_t version) {
    return HasSubstr(absl::StrCat("speaks protocol ", version));
  };
  EXPECT_THAT(said_.errors(), ElementsAre(AllOf(speaks(kProtocolVersion + 1),
                                                speaks(kProtocolVersion))));
}

TEST_F(TrainingSessionTest, SignalBeforeTheFirstStepExitsCleanly) {
  auto session = Make();
  session->RequestStop(15);
  EXPECT_EQ(session->Run(), 143);
  EXPECT_THAT(said_.lines(), Contains("I stopped by signal 15"));
  EXPECT_THAT(said_.errors(), SizeIs(0));
}

}  // namespace
}  // namespace muster
