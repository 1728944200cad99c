#include "worker/hook/best_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "worker/hook/evaluation_watch.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BestKeeperTest : public ::testing::Test {
 protected:
  BestKeeperTest() {
    EvaluationWatch::Options watched;
    watched.kept.metric = "test_accuracy";
    watch_ = std::make_unique<EvaluationWatch>(watched);
    keeper_ = std::make_unique<BestKeeper>(
        &saver_, [this](const PendingSave& cut) { return Evaluate(cut); },
        lines_.reporter());
  }
  PendingSave Cut() {
    PendingSave cut;
    cut.global_step = global_step_;
    const std::string name = absl::StrCat("ckpt-", global_step_);
    cut.write = [this, name] { return Write(name); };
    cut.write_best = [this, name](const EvaluationHistory& history) {
      return Write(absl::StrCat(name, " best=", history.kept().best_step()));
    };
    cut.discard = [this, name] { calls_.push_back("discard " + name); };
    return cut;
  }
  absl::StatusOr<std::string> Write(const std::string& name) {
    if (gate_ != nullptr) gate_->WaitForNotification();
    if (!write_error_.ok()) return write_error_;
    calls_.push_back("write " + name);
    return name;
  }
  absl::StatusOr<EvaluationResult> Evaluate(const PendingSave& cut) {
    // Others push meanwhile.
    global_step_ = cut.global_step + 5;
    if (!evaluate_error_.ok()) return evaluate_error_;
    EvaluationResult result;
    result.examples = 10;
    result.metrics.values = {{"accuracy", accuracy_}};
    return result;
  }
  // An evaluation of the model of `global_step`.
  bool IsBest(int64_t global_step, double accuracy, bool usable = true) {
    global_step_ = global_step;
    accuracy_ = accuracy;
    const auto result = keeper_->EvaluateNow();
    EXPECT_THAT(result, IsOk());
    EXPECT_EQ(result->global_step, global_step);
    watch_->Enter(keeper_->WithBest(watch_->history()));
    const bool is_best = watch_->Add(global_step, *result).is_best;
    keeper_->Finish(is_best && usable, watch_->history());
    return is_best;
  }
  // The step of the best one that is saved; 0: none.
  int64_t Kept() {
    return keeper_->WithBest(watch_->history()).kept().best_step();
  }

  int64_t global_step_ = 0;
  double accuracy_ = 0;
  absl::Status write_error_;
  absl::Status evaluate_error_;
  absl::Notification* gate_ = nullptr;
  // By one thread at a time: each cut waits for the writer.
  std::vector<std::string> calls_;
  ReportedLines lines_;
  std::unique_ptr<EvaluationWatch> watch_;
  std::unique_ptr<BestKeeper> keeper_;
  CheckpointSaver saver_{{}, [this] { return Cut(); }, lines_.reporter()};
};

TEST_F(BestKeeperTest, ABetterModel_IsSavedAsItWasEvaluated) {
  EXPECT_TRUE(IsBest(10, 0.5));
  EXPECT_TRUE(IsBest(20, 0.6));
  saver_.WaitForWriter();
  EXPECT_THAT(calls_,
              ElementsAre("write ckpt-10 best=10", "write ckpt-20 best=20"));
  EXPECT_EQ(saver_.newest(), "ckpt-20 best=20");
  EXPECT_EQ(Kept(), 20);
}

TEST_F(BestKeeperTest, AModelThatIsNotBetter_IsDiscarded) {
  EXPECT_TRUE(IsBest(10, 0.5));
  EXPECT_FALSE(IsBest(20, 0.5));
  EXPECT_THAT(calls_, ElementsAre("write ckpt-10 best=10", "discard ckpt-20"));
  EXPECT_EQ(Kept(), 10);
}

TEST_F(BestKeeperTest, ABestModelIsTheRunsOnlyWhenItIsSaved) {
  EXPECT_TRUE(IsBest(10, 0.5));
  saver_.WaitForWriter();
  absl::Notification gate;
  gate_ = &gate;
  EXPECT_TRUE(IsBest(20, 0.6));
  EXPECT_EQ(Kept(), 10);
  gate.Notify();
  saver_.WaitForWriter();
  EXPECT_EQ(Kept(), 20);
}

TEST_F(BestKeeperTest, ASaveThatFails_LeavesTheFormerBestAndSaysSo) {
  EXPECT_TRUE(IsBest(10, 0.5));
  saver_.WaitForWriter();
  write_error_ = absl::ResourceExhaustedError("disk full");
  EXPECT_TRUE(IsBest(20, 0.7));
  saver_.WaitForWriter();
  EXPECT_EQ(Kept(), 10);
  EXPECT_THAT(lines_.lines(),
              Contains(HasSubstr("of step 20, is lost: that of step 10 is")));
  EXPECT_THAT(lines_.lines(), Contains(HasSubstr("disk full")));
  write_error_ = absl::OkStatus();
  EXPECT_TRUE(IsBest(30, 0.6)) << "better than what is kept";
  saver_.WaitForWriter();
  EXPECT_EQ(Kept(), 30);
}

TEST_F(BestKeeperTest, AModelWithoutAnswers_IsNotKept) {
  IsBest(10, 0.5, /*usable=*/false);
  EXPECT_THAT(calls_, ElementsAre("discard ckpt-10"));
  EXPECT_EQ(Kept(), 0);
  EXPECT_TRUE(IsBest(20, 0.1));
}

TEST_F(BestKeeperTest, AnEvaluationThatFails_FreesTheModel) {
  evaluate_error_ = absl::UnavailableError("ps gone");
  EXPECT_THAT(keeper_->EvaluateNow(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(calls_, ElementsAre("discard ckpt-0"));
}

TEST_F(BestKeeperTest, GoesOnFromTheBestOfTheRun) {
  EvaluationHistory history;
  history.mutable_kept()->set_metric("test_accuracy");
  history.mutable_kept()->set_best(0.9);
  history.mutable_kept()->set_best_step(5);
  watch_->Enter(history);
  keeper_->Enter(history);
  EXPECT_FALSE(IsBest(10, 0.8));
  EXPECT_EQ(Kept(), 5);
}

}  // namespace
}  // namespace muster
