// TrainLoop with a PipelinedExchange.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/rows/row_ranges.h"
#include "common/rpc/error_reason.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
#include "tests/worker/step/grants.h"
#include "tests/worker/step/tiny_model.h"
#include "worker/step/make_exchange.h"
#include "worker/step/train_loop.h"

namespace muster {
namespace {

constexpr int64_t kClasses = 8;
constexpr int64_t kRows = 4;
// The data set has a row a class: two steps an epoch.
RowLease RowsOf(int64_t number) { return RowsOfStep(number, kRows); }

// Longer than anything that is not held back, which takes microseconds.
constexpr absl::Duration kLongEnough = absl::Milliseconds(100);

// A worker and its shard, to which the fake adds what is pushed.
class Worker {
 public:
  explicit Worker(int pipeline_depth, TrainLoop::Options options = {}) {
    EXPECT_THAT(tiny_.Load(std::vector<float>(kClasses, 0.0f)), IsOk());
    ExchangeOptions exchange = tiny_.exchange_options();
    exchange.clock = tiny_.clock();
    exchange.replication.mutable_async()->set_pipeline_depth(pipeline_depth);
    exchange.may_push_early = options.change_gradients == nullptr;
    exchange_ = MakeStepExchange(exchange);
    options.exchange = exchange_.get();
    options.towers = tiny_.towers();
    options.data_set = &data_set_;
    options.clock = tiny_.clock();
    options.input.batch_size = kRows;
    auto loop = TrainLoop::Create(options);
    EXPECT_THAT(loop, IsOk());
    loop_ = *std::move(loop);
  }

  static absl::StatusOr<PushDecision> Push(const ComputedStep& /*computed*/) {
    return PushDecision::kPush;
  }
  // `rows_of`: the step whose rows are granted, and those after them; 0: its
  // own.
  absl::StatusOr<StepReport> Run(
      int64_t step, const StepRunner::BeforePush& before_push = &Push,
      int64_t rows_of = 0) {
    return Run(step, GrantOf(rows_of == 0 ? step : rows_of, kRows),
               before_push);
  }
  absl::StatusOr<StepReport> Run(int64_t step, const StepGrant& grant,
                                 const StepRunner::BeforePush& before_push) {
    return loop_->Run(step, grant, before_push);
  }
  absl::Status Enter(int64_t epoch, bool is_new) {
    return loop_->Enter({epoch, {TinyModel::kIncarnation}, is_new});
  }

  std::vector<float> bias() {
    const std::string bytes = tiny_.shard().values("logits/bias");
    const auto* const values = reinterpret_cast<const float*>(bytes.data());
    return {values, values + kClasses};
  }
  TinyModel& tiny() { return tiny_; }
  TrainLoop& loop() { return *loop_; }

 private:
  const CountingDataSet data_set_{kClasses};
  TinyModel tiny_{kClasses, kRows, CompileOptions::Mode::kTrain};
  std::unique_ptr<StepExchange> exchange_;
  std::unique_ptr<TrainLoop> loop_;
};

absl::StatusOr<PushDecision> Refuse(const ComputedStep& /*computed*/) {
  return PushDecision::kRefuse;
}

TEST(TrainLoopPipelineTest, TheNextStepIsComputedBeforeThisIsAcknowledged) {
  Worker worker(2);
  worker.tiny().link().HoldPushes(true);
  absl::StatusOr<StepReport> first;
  absl::Notification returned;
  std::thread runner([&] {
    first = worker.Run(1);
    returned.Notify();
  });
  EXPECT_FALSE(returned.WaitForNotificationWithTimeout(kLongEnough))
      << "no shard has acknowledged";
  worker.tiny().link().HoldPushes(false);
  runner.join();
  ASSERT_THAT(first, IsOk());
  const auto second = worker.Run(2);
  ASSERT_THAT(second, IsOk());
  EXPECT_LT(second->times.computed, first->times.pushed);
  EXPECT_LE(first->times.pushed, first->times.ended);
  EXPECT_LE(second->times.computed, second->times.begun);
  EXPECT_LE(second->times.begun, second->times.pushed);
}

TEST(TrainLoopPipelineTest, TheWorkersOwnUpdateCountsAsStaleness) {
  Worker two(2);
  Worker one(1);
  for (int64_t step = 1; step <= 5; ++step) {
    const auto pipelined = two.Run(step);
    ASSERT_THAT(pipelined, IsOk());
    EXPECT_EQ(pipelined->staleness, step == 1 ? 0 : 1) << "step " << step;
    const auto report = one.Run(step);
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->staleness, 0);
  }
}

TEST(TrainLoopPipelineTest, RowsAndCountsAreThoseOfEachStep) {
  Worker worker(2);
  for (int64_t step = 1; step <= 5; ++step) {
    const auto report = worker.Run(step);
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->step, step);
    EXPECT_EQ(report->rows, RowsOf(step));
    EXPECT_EQ(report->examples, kRows);
  }
}

// The step that is computed ahead is the one after.
TEST(TrainLoopPipelineTest, AStepOfTheProfileIsTracedWhenItIsComputed) {
  TrainLoop::Options options;
  options.profiled = {/*first=*/3, /*count=*/1};
  Worker worker(2, options);
  for (int64_t step = 1; step <= 4; ++step) {
    const auto report = worker.Run(step);
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->times.devices.size(), step == 3 ? 1 : 0) << step;
  }
}

// The gradient of the rows after `steps` steps, of a model of zeros.
std::vector<float> FirstGradient(int64_t steps) {
  Worker worker(1);
  EXPECT_THAT(worker.Run(1, &Worker::Push, steps + 1), IsOk());
  return worker.bias();
}

TEST(TrainLoopPipelineTest, TheSecondStepIsOfWhatTheFirstWasOf) {
  Worker worker(2);
  ASSERT_THAT(worker.Run(1), IsOk());
  EXPECT_EQ(worker.bias(), FirstGradient(0));
  ASSERT_THAT(worker.Run(2), IsOk());
  std::vector<float> wanted = FirstGradient(0);
  const std::vector<float> second = FirstGradient(1);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += second[i];
  EXPECT_EQ(worker.bias(), wanted);
}

TEST(TrainLoopPipelineTest, HooksSeeWhatAGradientWasComputedFrom) {
  Worker worker(2);
  // By step, what the hooks saw, and what the shard then had.
  std::vector<std::vector<float>> seen;
  std::vector<std::vector<float>> on_shard;
  for (int64_t step = 1; step <= 5; ++step) {
    ASSERT_THAT(worker.Run(step,
                           [&](const ComputedStep& computed) {
                             const auto bias = computed.tensors[1].value;
                             seen.emplace_back(bias.begin(), bias.end());
                             return PushDecision::kPush;
                           }),
                IsOk());
    on_shard.push_back(worker.bias());
  }
  const std::vector<float> zeros(kClasses, 0.0f);
  EXPECT_EQ(seen, (std::vector<std::vector<float>>{zeros, zeros, on_shard[0],
                                                   on_shard[1], on_shard[2]}));
}

TEST(TrainLoopPipelineTest, GradientsAreChangedBeforeTheyLeave) {
  TrainLoop::Options options;
  options.change_gradients = [](auto gradients) {
    for (float& value : gradients[1]) value = 2;
  };
  Worker worker(2, options);
  for (int64_t step = 1; step <= 3; ++step) {
    ASSERT_THAT(worker.Run(step), IsOk());
    EXPECT_EQ(worker.bias(), std::vector<float>(kClasses, 2.0f * step));
  }
}

TEST(TrainLoopPipelineTest, AfterAFailedPushItsRowsAreUsedAgain) {
  Worker worker(2);
  ASSERT_THAT(worker.Run(1), IsOk());
  const std::vector<float> before = worker.bias();
  ASSERT_THAT(worker.Run(2,
                         [&](const ComputedStep&) {
                           worker.tiny().shard().FailWith(FencedError("gone"));
                           return PushDecision::kPush;
                         }),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_EQ(worker.bias(), before);
  worker.tiny().shard().FailWith(absl::OkStatus());
  ASSERT_THAT(worker.Enter(1, /*is_new=*/false), IsOk());
  for (int64_t step = 3; step <= 5; ++step) {
    const auto report = worker.Run(step, &Worker::Push, step - 1);
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->rows, RowsOf(step - 1));
    EXPECT_EQ(report->staleness, step == 3 ? 0 : 1);
  }
}

// The shard has the gradient, and its answer is lost.
void CheckResumedStep(int pipeline_depth) {
  Worker worker(pipeline_depth);
  Worker untroubled(pipeline_depth);
  ASSERT_THAT(worker.Run(1), IsOk());
  ASSERT_THAT(untroubled.Run(1), IsOk());
  worker.tiny().shard().AnswerWith(absl::UnavailableError("reset"));
  ASSERT_THAT(worker.Run(2), StatusIs(absl::StatusCode::kUnavailable));
  ASSERT_TRUE(worker.loop().may_resume());
  worker.tiny().shard().AnswerWith(absl::OkStatus());
  ASSERT_THAT(worker.Enter(1, /*is_new=*/false), IsOk());
  const auto resumed = worker.loop().Resume();
  ASSERT_THAT(resumed, IsOk());
  EXPECT_FALSE(worker.loop().may_resume());
  EXPECT_EQ(resumed->step, 2);
  EXPECT_EQ(resumed->examples, kRows);
  EXPECT_EQ(resumed->rows, RowsOf(2));
  ASSERT_THAT(untroubled.Run(2), IsOk());
  EXPECT_EQ(worker.bias(), untroubled.bias());
  // From new values.
  const auto third = worker.Run(3);
  ASSERT_THAT(third, IsOk());
  EXPECT_EQ(third->rows, RowsOf(3));
  EXPECT_EQ(third->staleness, 0);
}

TEST(TrainLoopPipelineTest, APushWithoutAnAnswerIsTheSameStepAgain) {
  CheckResumedStep(/*pipeline_depth=*/2);
  CheckResumedStep(/*pipeline_depth=*/1);
}

TEST(TrainLoopPipelineTest, AnotherEpochGivesAnUnansweredPushUp) {
  Worker worker(2);
  ASSERT_THAT(worker.Run(1), IsOk());
  worker.tiny().shard().FailWith(absl::UnavailableError("reset"));
  ASSERT_THAT(worker.Run(2), StatusIs(absl::StatusCode::kUnavailable));
  worker.tiny().shard().FailWith(absl::OkStatus());
  ASSERT_THAT(worker.Enter(2, /*is_new=*/true), IsOk());
  EXPECT_FALSE(worker.loop().may_resume());
  const auto report = worker.Run(3, &Worker::Push, 6);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->rows, RowsOf(6));
}

TEST(TrainLoopPipelineTest, AStepThatIsNotResumedHasItsRowsUsedAgain) {
  Worker worker(2);
  ASSERT_THAT(worker.Run(1), IsOk());
  worker.tiny().shard().FailWith(absl::UnavailableError("reset"));
  ASSERT_THAT(worker.Run(2), StatusIs(absl::StatusCode::kUnavailable));
  worker.tiny().shard().FailWith(FencedError("gone"));
  EXPECT_THAT(worker.loop().Resume(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_FALSE(worker.loop().may_resume());
  worker.tiny().shard().FailWith(absl::OkStatus());
  ASSERT_THAT(worker.Enter(1, /*is_new=*/false), IsOk());
  const auto report = worker.Run(3, &Worker::Push, 2);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->rows, RowsOf(2));
}

// An error while the next step is computed fails that one, not the one whose
// push comes through.
TEST(TrainLoopPipelineTest, AFailedPullFailsTheStepThatWantsIt) {
  Worker worker(2);
  ASSERT_THAT(worker.Run(1), IsOk());
  ASSERT_THAT(worker.Enter(1, /*is_new=*/false), IsOk());
  worker.tiny().shard().FailWith(FencedError("x"));
  const auto failed = worker.Run(2);
  EXPECT_THAT(failed, StatusIs(absl::StatusCode::kAborted));
  worker.tiny().shard().FailWith(absl::OkStatus());
  const auto report = worker.Run(3, &Worker::Push, 2);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->rows, RowsOf(2));
}

TEST(TrainLoopPipelineTest, AStoppedStepKeepsItsRows) {
  Worker worker(2);
  ASSERT_THAT(worker.Run(1), IsOk());
  const std::vector<float> before = worker.bias();
  EXPECT_THAT(
      worker.Run(2,
                 [](const ComputedStep&) -> absl::StatusOr<PushDecision> {
                   return absl::OutOfRangeError("loss is nan");
                 }),
      StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(worker.bias(), before);
  const auto report = worker.Run(3, &Worker::Push, 2);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->rows, RowsOf(2));
}

TEST(TrainLoopPipelineTest, ARefusedStepPassesItsRowsOver) {
  Worker worker(2);
  ASSERT_THAT(worker.Run(1), IsOk());
  const std::vector<float> before = worker.bias();
  const auto refused = worker.Run(2, Refuse);
  ASSERT_THAT(refused, IsOk());
  EXPECT_TRUE(refused->abandoned);
  EXPECT_EQ(worker.bias(), before);
  const auto report = worker.Run(3);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->rows, RowsOf(3));
  EXPECT_EQ(report->staleness, 0);
}

TEST(TrainLoopPipelineTest, AnEpochThrowsAwayWhatWasComputed) {
  Worker worker(2);
  ASSERT_THAT(worker.Run(1), IsOk());
  ASSERT_THAT(worker.Enter(2, /*is_new=*/true), IsOk());
  const auto report = worker.Run(2, &Worker::Push, 6);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->rows, RowsOf(6));
  EXPECT_EQ(report->staleness, 0);
}

TEST(TrainLoopPipelineTest, TheSameEpochKeepsTheRowsOfWhatWasComputed) {
  Worker worker(2);
  ASSERT_THAT(worker.Run(1), IsOk());
  ASSERT_THAT(worker.Enter(1, /*is_new=*/false), IsOk());
  const auto report = worker.Run(2);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->rows, RowsOf(2));
  EXPECT_EQ(report->staleness, 0);
}

TEST(TrainLoopPipelineTest, WithoutASecondLease_NothingIsComputedAhead) {
  Worker worker(2);
  for (int64_t step = 1; step <= 3; ++step) {
    const auto report =
        worker.Run(step, {{}, {RowsOf(step)}, {}}, &Worker::Push);
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->rows, RowsOf(step));
    EXPECT_EQ(report->staleness, 0);
    EXPECT_LE(report->times.begun, report->times.compute_begun);
  }
}

TEST(TrainLoopPipelineTest, OtherRowsThanThoseComputedAhead_AreComputed) {
  Worker worker(2);
  Worker untroubled(1);
  for (Worker* const each : {&worker, &untroubled}) {
    ASSERT_THAT(each->Run(1), IsOk());
    const auto report = each->Run(2, &Worker::Push, /*rows_of=*/5);
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->rows, RowsOf(5));
    EXPECT_EQ(report->staleness, 0);
  }
  EXPECT_EQ(worker.bias(), untroubled.bias());
}

}  // namespace
}  // namespace muster
