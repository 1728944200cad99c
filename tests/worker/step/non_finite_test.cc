// A NaN or infinity in the data of one step (T24): what a worker does with it,
// from the rows to the shard.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rows/row_ranges.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/poisoned_data_set.h"
#include "tests/worker/step/grants.h"
#include "tests/worker/step/tiny_model.h"
#include "worker/hook/nan_guard.h"
#include "worker/step/make_exchange.h"
#include "worker/step/train_loop.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kClasses = 8;
// Unshuffled: step k has rows 2k - 2 and 2k - 1.
constexpr int64_t kRows = 2;
constexpr int64_t kBadStep = 3;
// Its last one.
constexpr int64_t kBadRow = kRows * kBadStep - 1;
constexpr float kHuge = 3e38f;

class NonFiniteTest : public ::testing::Test {
 protected:
  void Start(float poison, const std::vector<float>& bias) {
    data_set_ = std::make_unique<PoisonedDataSet>(kClasses, kBadRow, poison);
    ASSERT_THAT(tiny_.Load(bias), IsOk());
    exchange_ = MakeStepExchange(tiny_.exchange_options());
    TrainLoop::Options options;
    options.exchange = exchange_.get();
    options.towers = tiny_.towers();
    options.data_set = data_set_.get();
    options.input.batch_size = kRows;
    options.input.shuffle = false;
    auto loop = TrainLoop::Create(options);
    ASSERT_THAT(loop, IsOk());
    loop_ = *std::move(loop);
  }
  absl::StatusOr<StepReport> Run(int64_t number) {
    return loop_->Run(number, GrantOf(number, kRows),
                      [&](const ComputedStep& computed) {
                        StepRecord step;
                        step.step = number;
                        step.loss = computed.loss;
                        step.tensors = computed.tensors;
                        return guard_.BeforePush(step);
                      });
  }
  std::string Shard() {
    return absl::StrCat(tiny_.shard().values("logits/weights"),
                        tiny_.shard().values("logits/bias"));
  }

  TinyModel tiny_{kClasses, kRows, CompileOptions::Mode::kTrain};
  std::unique_ptr<PoisonedDataSet> data_set_;
  std::unique_ptr<StepExchange> exchange_;
  std::unique_ptr<TrainLoop> loop_;
  ReportedLines said_;
  NanGuard guard_{
      {"/job:worker/task:1", /*max_refusals=*/3, nullptr, said_.reporter()}};
};

class BadGradientTest : public NonFiniteTest,
                        public ::testing::WithParamInterface<float> {};

TEST_P(BadGradientTest, IsNamedAndReachesNoParameter) {
  Start(GetParam(), std::vector<float>(kClasses, 0.0f));
  for (int64_t step = 1; step < kBadStep; ++step) {
    ASSERT_THAT(Run(step), IsOk());
  }
  const std::string before = Shard();
  const auto refused = Run(kBadStep);
  ASSERT_THAT(refused, IsOk());
  EXPECT_TRUE(refused->abandoned);
  EXPECT_TRUE(refused->skipped);
  EXPECT_EQ(Shard(), before);
  EXPECT_THAT(said_.lines(),
              ElementsAre(AllOf(HasSubstr("step 3 of /job:worker/task:1"),
                                HasSubstr("gradient of 'logits/weights' is"),
                                HasSubstr("nan at element"))));
  // The training goes on with the rows after them.
  const auto next = Run(kBadStep + 1);
  ASSERT_THAT(next, IsOk());
  EXPECT_FALSE(next->abandoned);
  EXPECT_EQ(next->rows, RowsOfStep(kBadStep + 1, kRows));
  EXPECT_NE(Shard(), before);
}

// An infinite input makes the gradients NaN, too.
INSTANTIATE_TEST_SUITE_P(
    Poisons, BadGradientTest,
    ::testing::Values(std::numeric_limits<float>::quiet_NaN(),
                      std::numeric_limits<float>::infinity(),
                      -std::numeric_limits<float>::infinity()));

TEST_F(NonFiniteTest, ABadLossIsNamedAndEndsTheTrainingInTheEnd) {
  // The outputs are finite, and so are the gradients; the loss is 6e38.
  std::vector<float> bias(kClasses, -kHuge);
  bias[kClasses - 1] = kHuge;
  Start(0.0f, bias);
  const std::string before = Shard();
  for (int64_t step = 1; step <= 2; ++step) {
    const auto refused = Run(step);
    ASSERT_THAT(refused, IsOk());
    EXPECT_TRUE(refused->abandoned);
  }
  EXPECT_THAT(said_.lines(), SizeIs(2));
  EXPECT_THAT(Run(3), StatusIs(absl::StatusCode::kOutOfRange,
                               AllOf(HasSubstr("step 3"),
                                     HasSubstr("the loss is inf"))));
  EXPECT_EQ(Shard(), before);
}

}  // namespace
}  // namespace muster
