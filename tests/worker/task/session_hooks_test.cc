#include "worker/task/session_hooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class SessionHooksTest : public ::testing::Test {
 protected:
  std::unique_ptr<SessionHooks> Make() {
    SessionHooks::Parts parts;
    parts.begin_save = [this]() -> absl::StatusOr<PendingSave> {
      calls_.push_back("save");
      PendingSave save;
      save.global_step = 1;
      save.write = [] { return std::string("ckpt-1"); };
      save.write_best =
          [](const EvaluationHistory& history) -> absl::StatusOr<std::string> {
        return "best-" + history.kept().metric();
      };
      save.discard = [this] { calls_.push_back("discard"); };
      return save;
    };
    parts.stop_job = [this](absl::string_view reason, const absl::Status&) {
      calls_.emplace_back(reason);
    };
    parts.write_file = [this](const std::string& path, const std::string&) {
      calls_.push_back(path);
      return absl::OkStatus();
    };
    parts.settle_evaluations = [](int64_t, EvaluationHistory known) {
      return known;
    };
    if (has_test_half_) {
      parts.evaluate = [this]() -> absl::StatusOr<EvaluationResult> {
        calls_.push_back("evaluate");
        return EvaluationResult{10, 1, {{{"accuracy", 0.5}}, {}}};
      };
      parts.evaluate_cut =
          [this](const PendingSave&) -> absl::StatusOr<EvaluationResult> {
        calls_.push_back("evaluate cut");
        return EvaluationResult{10, 1, {{{"accuracy", 0.5}}, {}}};
      };
    }
    if (evaluates_at_end_) {
      parts.evaluate_at_end = [this]() -> absl::StatusOr<EvaluationResult> {
        calls_.push_back("evaluate at end");
        return EvaluationResult{10, 1, {{{"accuracy", 0.25}}, {}}};
      };
    }
    auto hooks = SessionHooks::Create(options_, parts);
    EXPECT_THAT(hooks, IsOk());
    return *std::move(hooks);
  }
  void End(const SessionHooks& hooks) {
    EndRecord end;
    end.global_step = 1;
    end.completed = true;
    for (Hook* hook : hooks.in_order()) EXPECT_THAT(hook->AtEnd(end), IsOk());
  }

  SessionHooks::Options options_;
  bool has_test_half_ = true;
  bool evaluates_at_end_ = false;
  std::vector<std::string> calls_;
};

TEST_F(SessionHooksTest, ChiefSavesBeforeItEvaluates) {
  options_.chief = options_.saves = true;
  const auto hooks = Make();
  EXPECT_EQ(hooks->newest_checkpoint(), "");
  EXPECT_THAT(hooks->evaluated(), IsEmpty());
  End(*hooks);
  EXPECT_EQ(calls_, (std::vector<std::string>{"save", "evaluate"}));
  EXPECT_EQ(hooks->newest_checkpoint(), "ckpt-1");
  ASSERT_THAT(hooks->evaluated(), SizeIs(1));
  EXPECT_EQ(hooks->evaluated()[0].metrics.Find("accuracy"), 0.5);
}

TEST_F(SessionHooksTest, TheTestHalfBesideAValidationHalf_StopsNoJob) {
  options_.chief = true;
  options_.training.mutable_evaluation()->set_every_steps(1);
  options_.training.mutable_stop()->set_target_accuracy(0.6);
  evaluates_at_end_ = true;
  const auto hooks = Make();
  StepRecord step;
  step.step = step.global_step = 1;
  for (Hook* hook : hooks->in_order()) {
    EXPECT_THAT(hook->AfterStep(step), IsOk());
  }
  End(*hooks);
  EXPECT_EQ(calls_, (std::vector<std::string>{"evaluate", "evaluate",
                                              "evaluate at end"}));
  EXPECT_THAT(hooks->evaluated(), SizeIs(2));
}

TEST_F(SessionHooksTest, AChiefThatKeepsTheBest_EvaluatesWhatItSavesLast) {
  options_.chief = options_.saves = true;
  options_.training.mutable_checkpoint()->mutable_keep_best();
  options_.watch.kept.metric = "test_accuracy";
  const auto hooks = Make();
  End(*hooks);
  EXPECT_EQ(calls_, (std::vector<std::string>{"save", "save", "evaluate cut"}));
  EXPECT_EQ(hooks->newest_checkpoint(), "best-test_accuracy");
  EXPECT_EQ(hooks->watched()->history().kept().best_step(), 1);
}

// Both are due after the step.
TEST_F(SessionHooksTest, ABestModelIsSavedOnceWhereASaveIsDue) {
  options_.chief = options_.saves = true;
  options_.training.mutable_checkpoint()->mutable_keep_best();
  options_.training.mutable_checkpoint()->set_every_steps(1);
  options_.training.mutable_evaluation()->set_every_steps(1);
  options_.watch.kept.metric = "test_accuracy";
  const auto hooks = Make();
  StepRecord step;
  step.step = step.global_step = 1;
  for (Hook* hook : hooks->in_order()) {
    EXPECT_THAT(hook->AfterStep(step), IsOk());
  }
  hooks->WaitForSaves();
  EXPECT_EQ(calls_, (std::vector<std::string>{"save", "evaluate cut"}));
}

TEST_F(SessionHooksTest, ChiefWithoutATestHalfSavesAndEvaluatesNothing) {
  options_.chief = options_.saves = true;
  has_test_half_ = false;
  const auto hooks = Make();
  End(*hooks);
  EXPECT_EQ(calls_, std::vector<std::string>{"save"});
  EXPECT_THAT(hooks->evaluated(), IsEmpty());
}

TEST_F(SessionHooksTest, ChiefSavesNoModelThatHasDiverged) {
  options_.chief = options_.saves = true;
  const auto hooks = Make();
  EndRecord end;
  end.completed = end.failed = true;
  for (Hook* hook : hooks->in_order()) EXPECT_THAT(hook->AtEnd(end), IsOk());
  EXPECT_EQ(calls_, std::vector<std::string>{"evaluate"});
}

TEST_F(SessionHooksTest, ChiefWithoutAFolderSavesNothing) {
  options_.chief = true;
  const auto hooks = Make();
  absl::Status saved;
  hooks->SaveNow([&saved](const absl::Status& status) { saved = status; });
  EXPECT_THAT(saved, StatusIs(absl::StatusCode::kFailedPrecondition));
  End(*hooks);
  EXPECT_EQ(calls_, std::vector<std::string>{"evaluate"});
  EXPECT_EQ(hooks->newest_checkpoint(), "");
}

TEST_F(SessionHooksTest, AnEvaluationInTimeStopsTheJob) {
  options_.chief = true;
  options_.training.mutable_evaluation()->set_every_steps(2);
  options_.training.mutable_stop()->set_target_accuracy(0.5);
  const auto hooks = Make();
  for (int64_t i = 1; i <= 2; ++i) {
    StepRecord step;
    step.step = step.global_step = i;
    for (Hook* hook : hooks->in_order()) {
      EXPECT_THAT(hook->AfterStep(step), IsOk());
    }
  }
  EXPECT_EQ(calls_, (std::vector<std::string>{"evaluate", "target_accuracy"}));
}

TEST_F(SessionHooksTest, NonFiniteStepsAreRefusedUnlessAllowed) {
  StepRecord step;
  step.loss = std::numeric_limits<double>::infinity();
  for (const bool allow : {false, true}) {
    options_.training.mutable_non_finite()->set_allow(allow);
    options_.training.mutable_non_finite()->set_max_refusals(2);
    const auto hooks = Make();
    PushDecision decision = PushDecision::kPush;
    for (Hook* hook : hooks->in_order()) {
      const auto decided = hook->BeforePush(step);
      ASSERT_THAT(decided, IsOk());
      if (*decided == PushDecision::kRefuse) decision = *decided;
    }
    EXPECT_EQ(decision == PushDecision::kPush, allow);
  }
}

TEST_F(SessionHooksTest, EveryWorkerCanBeProfiled) {
  options_.profile.steps.count = 1;
  options_.profile.path = "profile.json";
  const auto hooks = Make();
  StepRecord step;
  step.step = 1;
  for (Hook* hook : hooks->in_order()) {
    EXPECT_THAT(hook->AfterStep(step), IsOk());
  }
  EXPECT_EQ(calls_, std::vector<std::string>{"profile.json"});
}

TEST_F(SessionHooksTest, OtherWorkersNeitherSaveNorEvaluate) {
  const auto hooks = Make();
  End(*hooks);
  EXPECT_THAT(calls_, SizeIs(0));
  EXPECT_THAT(hooks->evaluated(), IsEmpty());
}

}  // namespace
}  // namespace muster
