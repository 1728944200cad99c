// Rows of sparse tables in a program's steps.
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/program/program_model.h"
#include "tests/worker/step/grants.h"
#include "worker/hook/nan_guard.h"
#include "worker/program/program_exchange.h"
#include "worker/program/program_steps.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using State = ProgramSteps::State;

constexpr absl::Duration kLong = absl::Minutes(5);

std::vector<TableDef> Tables() {
  std::vector<TableDef> tables(2);
  tables[0].set_name("user");
  tables[0].set_dim(2);
  tables[1].set_name("item");
  tables[1].set_dim(1);
  return tables;
}

// The test is the program; the session's thread is one for each call.
class ProgramRowsTest : public ::testing::Test {
 protected:
  enum { kUser, kItem };

  void SetUp() override {
    ASSERT_THAT(model_.Load(), IsOk());
    TrainingSpec training;
    training.mutable_replication()->mutable_async();
    exchange_ = MakeProgramExchange(model_.client(), training, model_.values(),
                                    SystemClock());
    ProgramSteps::Options options;
    options.exchange = exchange_.get();
    options.client = model_.client();
    options.clock = SystemClock();
    options.tensors.push_back({"w", {2, 2}, true, model_.w, {}});
    options.tensors.push_back({"mean", {3}, false, model_.mean, {}});
    for (const TableDef& table : Tables()) {
      ProgramTable& of_program = options.tables.emplace_back();
      of_program.set_name(table.name());
      of_program.set_dim(table.dim());
    }
    steps_ = std::make_unique<ProgramSteps>(std::move(options));
    ASSERT_THAT(Enter(/*model_epoch=*/1), IsOk());
  }
  absl::Status Enter(int64_t model_epoch) {
    return steps_->Enter(
        {model_epoch, {ProgramModel::kIncarnation}, /*is_new=*/true});
  }

  using Report = absl::StatusOr<StepReport>;
  std::future<Report> Begin(int64_t step) {
    return std::async(std::launch::async, [this, step] {
      return steps_->Run(step, GrantOf(step, /*rows=*/4, token_),
                         [this](const ComputedStep& computed) {
                           return before_push_(computed);
                         });
    });
  }
  ProgramSteps::Offer AwaitOffer() {
    ProgramSteps::Offer offer;
    EXPECT_EQ(steps_->Await(kLong, &offer), State::kStep);
    return offer;
  }
  absl::Status Give() {
    return steps_->Give({absl::MakeSpan(w_), absl::MakeSpan(mean_)}, {});
  }
  absl::StatusOr<State> PullUsers(absl::Duration timeout = kLong) {
    users_.assign(4, -7);
    return steps_->PullRows(kUser, ids_, absl::MakeSpan(users_), timeout);
  }
  // A whole step that adds these to the rows of "user".
  Report Step(int64_t step, float gradient) {
    auto report = Begin(step);
    AwaitOffer();
    EXPECT_THAT(PullUsers(), IsOk());
    gradients_.assign(4, gradient);
    EXPECT_THAT(steps_->GiveRows(kUser, ids_, gradients_), IsOk());
    EXPECT_THAT(Give(), IsOk());
    return report.get();
  }

  ProgramModel model_{Tables()};
  std::unique_ptr<PsExchange> exchange_;
  std::unique_ptr<ProgramSteps> steps_;
  StepToken token_;
  StepRunner::BeforePush before_push_ = [](const ComputedStep&) {
    return PushDecision::kPush;
  };
  const std::vector<int64_t> ids_ = {9, -4};
  std::vector<float> users_;
  std::vector<float> gradients_;
  std::vector<float> w_ = std::vector<float>(4, 1.0f);
  std::vector<float> mean_ = std::vector<float>(3, 0.0f);
};

TEST_F(ProgramRowsTest, RowsOfAStep_ArePushedWithItsGradients) {
  for (int step = 1; step <= 3; ++step) {
    const Report report = Step(step, 2);
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->staleness, 0);
    EXPECT_THAT(users_, Each(2 * (step - 1)));
    EXPECT_THAT(model_.shard().row("user", 9), Each(2 * step));
    EXPECT_THAT(model_.shard().row("user", -4), Each(2 * step));
    EXPECT_THAT(model_.OnShard("w"), Each(1 + step));
  }
  EXPECT_THAT(model_.shard().row("item", 9), IsEmpty());
  // Two rows of 8 + 2 * 4 bytes a step, both ways.
  EXPECT_EQ(exchange_->bytes().sent, 3 * (7 * 4 + 32));
  EXPECT_EQ(model_.client()->pulled_row_bytes(), 3 * 32);
}

TEST_F(ProgramRowsTest, AStepWithoutRows_PushesNone) {
  auto report = Begin(1);
  AwaitOffer();
  ASSERT_THAT(Give(), IsOk());
  ASSERT_THAT(report.get(), IsOk());
  ASSERT_THAT(Step(2, 1), IsOk());
  report = Begin(3);
  AwaitOffer();
  ASSERT_THAT(Give(), IsOk());
  ASSERT_THAT(report.get(), IsOk());
  EXPECT_THAT(model_.shard().row("user", 9), Each(1));
}

TEST_F(ProgramRowsTest, APull_HasTheTokenOfTheOffer) {
  token_.set_round(6);
  auto report = Begin(1);
  AwaitOffer();
  ASSERT_THAT(PullUsers(), IsOk());
  EXPECT_EQ(model_.shard().round(), 6);
  ASSERT_THAT(Give(), IsOk());
  ASSERT_THAT(report.get(), IsOk());
}

TEST_F(ProgramRowsTest, APullWithoutAnOffer_WaitsForOne) {
  EXPECT_EQ(*PullUsers(absl::ZeroDuration()), State::kWaiting);
  auto pull =
      std::async(std::launch::async, [this] { return PullUsers(kLong); });
  auto report = Begin(1);
  EXPECT_EQ(*pull.get(), State::kStep);
  EXPECT_THAT(users_, Each(0));
  AwaitOffer();
  ASSERT_THAT(Give(), IsOk());
  ASSERT_THAT(report.get(), IsOk());
}

TEST_F(ProgramRowsTest, APsThatWasStartedAnew_WithdrawsTheOffer) {
  auto report = Begin(1);
  AwaitOffer();
  model_.shard().FailWith(FencedError("epoch 1"));
  // Begins with the old epoch, and ends with the next one.
  auto pull =
      std::async(std::launch::async, [this] { return PullUsers(kLong); });
  EXPECT_THAT(report.get(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("pull of rows")));
  model_.shard().FailWith(absl::OkStatus());
  ASSERT_THAT(Enter(/*model_epoch=*/2), IsOk());
  report = Begin(2);
  ASSERT_EQ(*pull.get(), State::kStep);
  EXPECT_THAT(users_, Each(0));
  // Of the step that was withdrawn.
  gradients_.assign(4, 5);
  ASSERT_THAT(steps_->GiveRows(kUser, ids_, gradients_), IsOk());
  ASSERT_THAT(Give(), IsOk());
  const ProgramSteps::Offer offer = AwaitOffer();
  EXPECT_EQ(offer.step, 2);
  EXPECT_EQ(offer.model_epoch, 2);
  EXPECT_TRUE(offer.dropped);
  ASSERT_THAT(Give(), IsOk());
  ASSERT_THAT(report.get(), IsOk());
  EXPECT_THAT(model_.OnShard("w"), Each(2)) << "once";
  EXPECT_THAT(model_.shard().row("user", 9), IsEmpty());
}

TEST_F(ProgramRowsTest, APsThatDoesNotAnswer_IsTheSessionsToWaitFor) {
  auto report = Begin(1);
  AwaitOffer();
  model_.shard().FailWith(absl::UnavailableError("connection refused"));
  EXPECT_EQ(*PullUsers(absl::ZeroDuration()), State::kWaiting);
  EXPECT_THAT(report.get(), StatusIs(absl::StatusCode::kUnavailable));
  model_.shard().FailWith(absl::OkStatus());
  EXPECT_THAT(Give(), IsOk()) << "the program could not know";
  ASSERT_THAT(Step(2, 1), IsOk());
  EXPECT_THAT(model_.shard().row("user", 9), Each(1));
}

TEST_F(ProgramRowsTest, AfterTheEnd_APullSaysSo) {
  steps_->Disconnect();
  steps_->End();
  EXPECT_EQ(*PullUsers(), State::kOver);
}

TEST_F(ProgramRowsTest, AWithdrawnStepAtAStop_TakesNoRows) {
  auto report = Begin(1);
  AwaitOffer();
  steps_->StopWaiting();
  EXPECT_FALSE(report.get().ok());
  gradients_.assign(4, 5);
  EXPECT_THAT(steps_->GiveRows(kUser, ids_, gradients_), IsOk());
  EXPECT_THAT(Give(), IsOk());
  EXPECT_THAT(model_.shard().row("user", 9), IsEmpty());
}

TEST_F(ProgramRowsTest, RowsThatCannotBe_AreRefusedByName) {
  EXPECT_THAT(steps_->GiveRows(kItem, {}, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  auto report = Begin(1);
  AwaitOffer();
  const std::vector<float> two(2, 1);
  EXPECT_THAT(steps_->GiveRows(kItem, {3, 3}, two),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("id 3"), HasSubstr("'item'"))));
  EXPECT_THAT(steps_->GiveRows(kUser, ids_, two),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("2 values of 'user'")));
  EXPECT_THAT(
      steps_->GiveRows(2, ids_, two),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("table 2")));
  EXPECT_THAT(
      steps_->PullRows(-1, ids_, absl::MakeSpan(users_), kLong),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("table -1")));
  ASSERT_THAT(steps_->GiveRows(kItem, ids_, two), IsOk());
  EXPECT_THAT(steps_->GiveRows(kItem, ids_, two),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("given before in this step")));
  EXPECT_THAT(
      steps_->GiveEarly(0, absl::MakeSpan(w_), {}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'user'")));
  ASSERT_THAT(Give(), IsOk());
  ASSERT_THAT(report.get(), IsOk());
  EXPECT_THAT(model_.shard().row("item", 9), Each(1));
}

TEST_F(ProgramRowsTest, AGradientOfARowThatIsNotFinite_IsTheGuards) {
  NanGuard::Options options;
  options.max_refusals = 3;
  NanGuard guard(options);
  before_push_ = [&](const ComputedStep& computed) {
    StepRecord record;
    record.has_loss = false;
    record.tensors = computed.tensors;
    record.rows = computed.rows;
    EXPECT_THAT(computed.rows, SizeIs(1));
    EXPECT_THAT(computed.rows[0].shape, ElementsAre(2, 2));
    return *guard.BeforePush(record);
  };
  const Report report = Step(1, std::numeric_limits<float>::quiet_NaN());
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->abandoned);
  EXPECT_THAT(model_.shard().row("user", 9), IsEmpty());
  EXPECT_THAT(model_.OnShard("w"), Each(1));
  // Nothing of it is left for the next one.
  ASSERT_THAT(Step(2, 3), IsOk());
  EXPECT_THAT(model_.shard().row("user", 9), Each(3));
}

}  // namespace
}  // namespace muster
