#include "worker/step/train_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/split_mix64.h"
#include "common/base/stopped_error.h"
#include "common/rows/row_ranges.h"
#include "common/rpc/error_reason.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
#include "tests/worker/step/grants.h"
#include "tests/worker/step/tiny_model.h"
#include "worker/client/call_status.h"
#include "worker/input/data_order.h"
#include "worker/step/make_exchange.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kClasses = 8;
constexpr int64_t kRows = 4;
RowLease RowsOf(int64_t number) { return RowsOfStep(number, kRows); }

// Counts how often rows are read. It has a row a class: two steps an epoch.
class CountedDataSet : public CountingDataSet {
 public:
  CountedDataSet() : CountingDataSet(kClasses) {}

  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    ++reads_[index];
    return CountingDataSet::Read(index, into);
  }
  // How often those of this step of the first epoch were read.
  std::vector<int> ReadsOf(int64_t step, uint64_t seed) const {
    const auto order = EpochPermutation(kClasses, seed, 0, /*shuffle=*/true);
    std::vector<int> reads;
    for (int64_t i = 0; i < kRows; ++i) {
      reads.push_back(reads_[order[(step - 1) * kRows + i]]);
    }
    return reads;
  }

 private:
  mutable std::array<std::atomic<int>, kClasses> reads_ = {};
};

// Rounding of a sum of a few float32.
constexpr double kRounding = 1e-6;

class TrainLoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(tiny_.Load(std::vector<float>(kClasses, 0.0f)), IsOk());
    ExchangeOptions exchange = tiny_.exchange_options();
    exchange.replication.mutable_async();
    exchange.may_push_early = false;
    exchange_ = MakeStepExchange(exchange);
    TrainLoop::Options options;
    options.exchange = exchange_.get();
    options.towers = tiny_.towers();
    options.data_set = data_set();
    options.input.batch_size = kRows;
    options.change_gradients = [this](auto gradients) { change_(gradients); };
    auto loop = TrainLoop::Create(options);
    ASSERT_THAT(loop, IsOk());
    loop_ = *std::move(loop);
  }

  // `rows_of`: the step whose rows are granted; 0: its own.
  absl::StatusOr<StepReport> Run(int64_t step,
                                 const absl::Status& before_push = {},
                                 int64_t rows_of = 0) {
    return loop_->Run(
        step, GrantOf(rows_of == 0 ? step : rows_of, kRows, token_),
        [&](const ComputedStep& step) -> absl::StatusOr<PushDecision> {
          computed_ = step;
          while_computing_();
          if (!before_push.ok()) return before_push;
          return decision_;
        });
  }
  virtual const DataSet* data_set() const { return &data_set_; }
  // The shard's bias: it started at zero, and the fake adds what is pushed.
  std::string Pushed() { return tiny_.shard().values("logits/bias"); }

  std::vector<int> ReadsOf(int64_t step) const {
    return data_set_.ReadsOf(step, InputPipeline::Options().seed);
  }

  const CountedDataSet data_set_;
  TinyModel tiny_{kClasses, kRows, CompileOptions::Mode::kTrain};
  std::unique_ptr<StepExchange> exchange_;
  std::unique_ptr<TrainLoop> loop_;
  // The token of the steps to come.
  StepToken token_;
  PushDecision decision_ = PushDecision::kPush;
  std::function<void()> while_computing_ = [] {};
  TrainLoop::ChangeGradients change_ = [](auto) {};
  // The last step, as it was to be decided on.
  ComputedStep computed_;
};

TEST_F(TrainLoopTest, PushesTheGradientOfABatch) {
  const auto report = Run(1);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->step, 1);
  EXPECT_EQ(report->examples, kRows);
  EXPECT_EQ(report->rows, RowsOf(1));
  EXPECT_EQ(report->pass, std::nullopt);
  EXPECT_FALSE(report->skipped);
  EXPECT_NEAR(report->loss, std::log(kClasses), kRounding);
  const absl::Span<const float> gradient = tiny_.model()->gradient(1);
  EXPECT_EQ(Pushed(),
            std::string(reinterpret_cast<const char*>(gradient.data()),
                        gradient.size() * sizeof(float)));
  EXPECT_NE(Pushed(), std::string(Pushed().size(), '\0'));
}

TEST_F(TrainLoopTest, AStepBeginsWithTheValuesThatThePushHasBrought) {
  ASSERT_THAT(Run(1), IsOk());
  const absl::Span<const float> bias = tiny_.model()->parameter(1);
  EXPECT_EQ(Pushed(), std::string(reinterpret_cast<const char*>(bias.data()),
                                  bias.size() * sizeof(float)));
  const int64_t pulls = tiny_.shard().pulls();
  ASSERT_THAT(Run(2), IsOk());
  EXPECT_EQ(tiny_.shard().pulls(), pulls);
}

TEST_F(TrainLoopTest, AfterARefusedStepValuesArePulled) {
  ASSERT_THAT(Run(1), IsOk());
  decision_ = PushDecision::kRefuse;
  ASSERT_THAT(Run(2), IsOk());
  decision_ = PushDecision::kPush;
  const int64_t pulls = tiny_.shard().pulls();
  ASSERT_THAT(Run(3), IsOk());
  EXPECT_GT(tiny_.shard().pulls(), pulls);
}

// What is prepared is trained on, also in another epoch.
TEST_F(TrainLoopTest, AStopEndsTheWaitForRowsOfThisEpochAndOfLaterOnes) {
  const auto run_to_error = [this](int64_t step) {
    absl::Status last;
    for (const int64_t end = step + 9; last.ok() && step < end; ++step) {
      last = Run(step).status();
    }
    return last;
  };
  loop_->StopReading();
  EXPECT_TRUE(IsStopped(run_to_error(1)));
  EnterEpoch epoch;
  epoch.model_epoch = 1;
  epoch.ps_incarnations = {1};
  ASSERT_THAT(loop_->Enter(epoch), IsOk());
  EXPECT_TRUE(IsStopped(run_to_error(11)));
}

// An evaluation, and another worker before it.
TEST_F(TrainLoopTest, ItsAgeIsThatOfItsOwnValuesWhoeverPullsMeanwhile) {
  ASSERT_THAT(Run(1), IsOk());
  std::vector<float> weights(tiny_.model()->parameter(0).size());
  std::vector<float> bias(kClasses);
  const std::vector<MutableTensorView> into = {
      MutableViewOf(absl::MakeSpan(weights)),
      MutableViewOf(absl::MakeSpan(bias))};
  ASSERT_THAT(tiny_.client()->PullAndWait(into), IsOk());
  ASSERT_THAT(
      tiny_.client()->PushAndWait(100, {ViewOf(absl::MakeConstSpan(weights)),
                                        ViewOf(absl::MakeConstSpan(bias))}),
      IsOk());
  ASSERT_THAT(tiny_.client()->PullAndWait(into), IsOk());
  const int64_t pulls = tiny_.shard().pulls();
  const auto report = Run(2);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->staleness, 1);
  EXPECT_EQ(tiny_.shard().pulls(), pulls);
}

// The forward pass begins while the pull is on its way.
TEST_F(TrainLoopTest, AFailedPullEndsTheStepAndItsRowsAreUsedAgain) {
  tiny_.shard().FailWith(FencedError("epoch 1"));
  const auto failed = Run(1);
  EXPECT_THAT(failed, StatusIs(absl::StatusCode::kAborted,
                               ::testing::StartsWith("pull: ")));
  tiny_.shard().FailWith(absl::OkStatus());
  const auto report = Run(2, {}, /*rows_of=*/1);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->rows, RowsOf(1));
  EXPECT_THAT(ReadsOf(1), Each(1));
}

// Data whose files are gone.
class LostDataSet : public CountingDataSet {
 public:
  using CountingDataSet::CountingDataSet;
  absl::Status Read(int64_t /*index*/,
                    const ExampleMemory& /*into*/) const override {
    return absl::NotFoundError("reading 'FILE': no such file");
  }
};

class LostDataTest : public TrainLoopTest {
 protected:
  const DataSet* data_set() const override { return &lost_; }

 private:
  const LostDataSet lost_{kClasses};
};

// NotFound and Unavailable of a peer would be tried again without end.
TEST_F(LostDataTest, EndsTheStepWithAnErrorOfAFile) {
  const auto report = Run(1);
  EXPECT_THAT(report, StatusIs(absl::StatusCode::kNotFound,
                               ::testing::HasSubstr("'FILE'")));
  EXPECT_TRUE(IsOfFile(report.status()));
}

TEST_F(TrainLoopTest, TheTimesOfAStepFollowEachOther) {
  const auto report = Run(1);
  ASSERT_THAT(report, IsOk());
  const StepTimes& times = report->times;
  EXPECT_LE(times.begun, times.read_begun);
  EXPECT_LE(times.read_begun, times.read);
  EXPECT_LE(times.pull_begun, times.pulled);
  EXPECT_LE(times.compute_begun, *times.forward_end);
  EXPECT_LE(*times.forward_end, *times.backward_end);
  EXPECT_LE(*times.backward_end, times.computed);
  EXPECT_LE(times.pulled, times.decided);
  EXPECT_LE(times.computed, times.decided);
  EXPECT_LE(times.decided, times.pushed);
  EXPECT_LE(times.pushed, times.ended);
}

TEST_F(TrainLoopTest, AStepThatIsStoppedPushesNothingAndItsRowsAreAtHand) {
  EXPECT_THAT(Run(1, absl::OutOfRangeError("loss is nan")),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_EQ(Pushed(), std::string(Pushed().size(), '\0'));
  const auto report = Run(2, {}, /*rows_of=*/1);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->rows, RowsOf(1));
  EXPECT_THAT(ReadsOf(1), Each(1));
}

TEST_F(TrainLoopTest, OtherRowsThanThoseAtHand_AreRead) {
  EXPECT_THAT(Run(1, absl::OutOfRangeError("given up")),
              StatusIs(absl::StatusCode::kOutOfRange));
  const absl::Span<const float> gradient = tiny_.model()->gradient(1);
  const std::vector<float> first(gradient.begin(), gradient.end());
  const auto report = Run(2, {}, /*rows_of=*/2);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->rows, RowsOf(2));
  EXPECT_NE(std::vector<float>(gradient.begin(), gradient.end()), first)
      << "rows of other classes";
}

TEST_F(TrainLoopTest, ARefusedStepPushesNothingAndPassesItsRowsOver) {
  decision_ = PushDecision::kRefuse;
  const auto refused = Run(1);
  ASSERT_THAT(refused, IsOk());
  EXPECT_TRUE(refused->abandoned);
  EXPECT_TRUE(refused->skipped);
  EXPECT_EQ(refused->rows, RowsOf(1));
  EXPECT_EQ(Pushed(), std::string(Pushed().size(), '\0'));
  decision_ = PushDecision::kPush;
  const auto report = Run(2);
  ASSERT_THAT(report, IsOk());
  EXPECT_FALSE(report->abandoned);
  EXPECT_EQ(report->rows, RowsOf(2));
}

TEST_F(TrainLoopTest, ShowsWhatItIsAboutToPush) {
  const auto report = Run(1);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(computed_.loss, report->loss);
  EXPECT_EQ(computed_.correct, report->correct);
  EXPECT_EQ(computed_.examples, kRows);
  ASSERT_EQ(computed_.tensors.size(), 2);
  const StepTensor& bias = computed_.tensors[1];
  EXPECT_EQ(bias.name, "logits/bias");
  EXPECT_TRUE(bias.trainable);
  EXPECT_EQ(bias.shape, std::vector<int64_t>{kClasses});
  EXPECT_EQ(bias.gradient.data(), tiny_.model()->gradient(1).data());
  EXPECT_EQ(bias.value.size(), kClasses);
}

TEST_F(TrainLoopTest, ChangesGradientsBetweenTheHooksAndThePush) {
  std::vector<float> shown;
  while_computing_ = [&] {
    const absl::Span<const float> bias = computed_.tensors[1].gradient;
    shown.assign(bias.begin(), bias.end());
  };
  change_ = [](absl::Span<const absl::Span<float>> gradients) {
    ASSERT_EQ(gradients.size(), 2);
    for (float& value : gradients[1]) value = 2;
  };
  ASSERT_THAT(Run(1), IsOk());
  const std::vector<float> pushed(kClasses, 2.0f);
  EXPECT_NE(shown, pushed);
  EXPECT_EQ(Pushed(), std::string(reinterpret_cast<const char*>(pushed.data()),
                                  pushed.size() * sizeof(float)));
}

TEST_F(TrainLoopTest, LeavesARefusedGradientAsItIs) {
  decision_ = PushDecision::kRefuse;
  bool changed = false;
  change_ = [&](auto) { changed = true; };
  ASSERT_THAT(Run(1), IsOk());
  EXPECT_FALSE(changed);
}

TEST_F(TrainLoopTest, PullsWithItsTokenAndPushesForItsRound) {
  token_.set_round(4);
  const auto report = Run(1);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(tiny_.shard().round(), 4);
  EXPECT_EQ(report->round, 4);
  EXPECT_FALSE(report->late);
}

TEST_F(TrainLoopTest, RowsOfALateStep_MayBeGrantedAgain) {
  token_.set_round(4);
  while_computing_ = [this] { tiny_.shard().AdvanceToRound(5); };
  const auto late = Run(1);
  ASSERT_THAT(late, IsOk());
  EXPECT_TRUE(late->late);
  EXPECT_FALSE(late->skipped);
  EXPECT_EQ(Pushed(), std::string(Pushed().size(), '\0'));
  token_.set_round(5);
  const auto report = Run(2, {}, /*rows_of=*/1);
  ASSERT_THAT(report, IsOk());
  EXPECT_FALSE(report->late);
  EXPECT_EQ(report->rows, RowsOf(1));
}

TEST_F(TrainLoopTest, AnEpochMayBeginWithAnyRows) {
  ASSERT_THAT(Run(1), IsOk());
  ASSERT_THAT(loop_->Enter({2, {TinyModel::kIncarnation}}), IsOk());
  const auto report = Run(2, {}, /*rows_of=*/6);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->rows, RowsOf(6));
}

// Each tensor is a part, and nobody changes gradients.
class EarlyPushTest : public ::testing::Test {
 protected:
  struct Worker {
    TinyModel tiny{kClasses, kRows, CompileOptions::Mode::kTrain,
                   /*max_part_bytes=*/4};
    std::unique_ptr<StepExchange> exchange;
    std::unique_ptr<TrainLoop> loop;

    std::string Shard() {
      return tiny.shard().values("logits/weights") +
             tiny.shard().values("logits/bias");
    }
  };

  std::unique_ptr<Worker> Make(bool may_push_early) {
    auto worker = std::make_unique<Worker>();
    EXPECT_THAT(worker->tiny.Load(std::vector<float>(kClasses, 0.0f)), IsOk());
    ExchangeOptions exchange = worker->tiny.exchange_options();
    exchange.may_push_early = may_push_early;
    worker->exchange = MakeStepExchange(exchange);
    TrainLoop::Options options;
    options.exchange = worker->exchange.get();
    options.towers = worker->tiny.towers();
    options.data_set = &data_set_;
    options.input.batch_size = kRows;
    auto loop = TrainLoop::Create(options);
    EXPECT_THAT(loop, IsOk());
    worker->loop = *std::move(loop);
    return worker;
  }
  // Also tells whether something had left before the decision.
  static absl::StatusOr<bool> Run(Worker* worker, int64_t step,
                                  absl::StatusOr<PushDecision> decision) {
    const std::string before = worker->Shard();
    bool left = false;
    const auto report = worker->loop->Run(
        step, GrantOf(step, kRows), [&](const ComputedStep& computed) {
          left = computed.push_begun;
          EXPECT_EQ(left, worker->Shard() != before);
          return decision;
        });
    if (!report.ok()) return report.status();
    EXPECT_TRUE(report->times.forward_end.has_value());
    EXPECT_TRUE(report->times.backward_end.has_value());
    return left;
  }

  const CountingDataSet data_set_{kClasses};
};

TEST_F(EarlyPushTest, PushesTheSameBitsAsAfterTheStep) {
  const auto early = Make(/*may_push_early=*/true);
  const auto late = Make(/*may_push_early=*/false);
  for (int64_t step = 1; step <= 20; ++step) {
    ASSERT_THAT(Run(early.get(), step, PushDecision::kPush),
                IsOkAndHolds(true));
    ASSERT_THAT(Run(late.get(), step, PushDecision::kPush),
                IsOkAndHolds(false));
    ASSERT_EQ(early->Shard(), late->Shard()) << "step " << step;
  }
}

TEST_F(EarlyPushTest, ARefusedOrFailedStepIsGivenUpAndTheNextIsAsAnyOther) {
  const auto worker = Make(/*may_push_early=*/true);
  ASSERT_THAT(Run(worker.get(), 1, PushDecision::kRefuse), IsOk());
  ASSERT_THAT(Run(worker.get(), 2, absl::OutOfRangeError("no more")),
              StatusIs(absl::StatusCode::kOutOfRange));
  const std::string before = worker->Shard();
  ASSERT_THAT(Run(worker.get(), 3, PushDecision::kPush), IsOk());
  EXPECT_NE(worker->Shard(), before);
}

// An exchange without values that notes its calls, and fails at last.
class NotedExchange : public StepExchange {
 public:
  explicit NotedExchange(bool wants_batches) : wants_batches_(wants_batches) {}

  Capabilities capabilities() const override { return {wants_batches_}; }
  void Enter(int64_t, absl::Span<const uint64_t>) override {}
  void BeginStep(int64_t, const StepToken&) override {
    calls_.push_back("BeginStep");
  }
  absl::StatusOr<ParameterGate*> Prepare(absl::Span<const SeededBatch> batches,
                                         const StepToken&) override {
    calls_.push_back(absl::StrCat("Prepare ", batches.size()));
    for (const SeededBatch& batch : batches) seeds_.push_back(batch.seed);
    return nullptr;
  }
  absl::Status OnForward(double) override {
    calls_.push_back("OnForward");
    return absl::OkStatus();
  }
  void OnGradient(int parameter) override {
    calls_.push_back(absl::StrCat("OnGradient ", parameter));
  }
  absl::Status OnComputed(const absl::Status& computed, StepTimes*) override {
    calls_.push_back("OnComputed");
    return computed;
  }
  void Describe(ComputedStep*) const override {}
  absl::Status Send() override {
    calls_.push_back("Send");
    return absl::OkStatus();
  }
  absl::StatusOr<StepResult> Finish() override {
    calls_.push_back("Finish");
    return absl::UnavailableError("gone");
  }
  void EndStep() override { calls_.push_back("EndStep"); }

  const std::vector<std::string>& calls() const { return calls_; }
  const std::vector<uint64_t>& seeds() const { return seeds_; }

 private:
  const bool wants_batches_;
  std::vector<uint64_t> seeds_;
  std::vector<std::string> calls_;
};

TEST(StepExchangeTest, IsCalledInItsOrder) {
  const CountingDataSet data_set(kClasses);
  for (const bool wants_batches : {false, true}) {
    TinyModel tiny(kClasses, kRows, CompileOptions::Mode::kTrain);
    NotedExchange exchange(wants_batches);
    TrainLoop::Options options;
    options.exchange = &exchange;
    options.towers = tiny.towers();
    options.data_set = &data_set;
    options.input.batch_size = kRows;
    const auto loop = TrainLoop::Create(options);
    ASSERT_THAT(loop, IsOk());
    EXPECT_THAT(
        (*loop)->Run(1, GrantOf(1, kRows),
                     [](const ComputedStep&) { return PushDecision::kPush; }),
        StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_THAT(
        exchange.calls(),
        ElementsAre("BeginStep", wants_batches ? "Prepare 1" : "Prepare 0",
                    "OnForward", "OnGradient 0", "OnGradient 1", "OnComputed",
                    "Send", "Finish", "EndStep"));
  }
}

// What dropout draws in steps of these rows.
std::vector<uint64_t> SeedsOf(const std::vector<RowLease>& leases) {
  const CountingDataSet data_set(kClasses);
  TinyModel tiny(kClasses, kRows, CompileOptions::Mode::kTrain);
  NotedExchange exchange(/*wants_batches=*/true);
  TrainLoop::Options options;
  options.exchange = &exchange;
  options.towers = tiny.towers();
  options.data_set = &data_set;
  options.input.batch_size = kRows;
  options.input.seed = 5;
  const auto loop = TrainLoop::Create(options);
  EXPECT_THAT(loop, IsOk());
  for (const RowLease& lease : leases) {
    EXPECT_THAT(
        (*loop)->Run(1, {{}, {lease}, {}},
                     [](const ComputedStep&) { return PushDecision::kPush; }),
        StatusIs(absl::StatusCode::kUnavailable));
  }
  return exchange.seeds();
}

TEST(TrainLoopSeedsTest, ALeaseHasTheSameOnesWhateverWasBefore) {
  const RowLease pieces = LeaseOf({{13, 3}, {30, 1}});
  const auto seeds = SeedsOf({RowsOf(1), RowsOf(2), RowsOf(5), pieces});
  EXPECT_THAT(SeedsOf({RowsOf(5), pieces, RowsOf(2)}),
              ElementsAre(seeds[2], seeds[3], seeds[1]));
  EXPECT_EQ(std::set<uint64_t>(seeds.begin(), seeds.end()).size(), 4);
}

// From before rows were leased.
TEST(TrainLoopSeedsTest, OneWorkerAloneHasThoseOfTheNumbersOfItsSteps) {
  EXPECT_THAT(SeedsOf({RowsOf(1), RowsOf(2)}),
              ElementsAre(SplitMix64(5 + kSplitMix64Step * 2),
                          SplitMix64(5 + kSplitMix64Step * 3)));
}

}  // namespace
}  // namespace muster
