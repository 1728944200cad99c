#include "worker/session/job_goal.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

JobState EndedFor(const std::string& reason, int64_t steps = 0,
                  int64_t examples = 0) {
  JobState job;
  job.set_phase(DONE);
  job.set_stop_reason(reason);
  job.set_global_step(steps);
  job.set_examples(examples);
  job.add_workers()->set_examples(examples);
  return job;
}

TEST(JobGoalTest, StepsAreReachedByTheGlobalStep) {
  JobGoal goal;
  goal.stop.set_steps(20);
  EXPECT_TRUE(IsReached(goal, EndedFor("steps", 20)));
  EXPECT_TRUE(IsReached(goal, EndedFor("interrupted", 20)));
  EXPECT_FALSE(IsReached(goal, EndedFor("steps", 19)));
  EXPECT_FALSE(IsReached(goal, EndedFor("epochs", 19)));
}

TEST(JobGoalTest, EpochsAreReachedWhenNoUpdateIsLeft) {
  JobGoal goal;
  goal.stop.set_epochs(2);
  goal.epoch_examples = 100;
  goal.update_examples = 30;
  EXPECT_TRUE(IsReached(goal, EndedFor("epochs", 6, 180)));
  EXPECT_FALSE(IsReached(goal, EndedFor("epochs", 5, 150)));
  JobState total = EndedFor("epochs", 6, 60);
  total.set_examples(180);
  EXPECT_TRUE(IsReached(goal, total)) << "workers have left";
}

TEST(JobGoalTest, WhatTheChiefJudgesIsReachedIfTheJobEndedForNoLess) {
  JobGoal goal;
  goal.stop.set_seconds(60);
  const auto ended_for = [](const std::string& reason, double value) {
    JobState job = EndedFor(reason);
    job.mutable_stop()->set_seconds(value);
    job.mutable_stop()->set_target_accuracy(value);
    return job;
  };
  EXPECT_TRUE(IsReached(goal, ended_for("seconds", 60)));
  EXPECT_FALSE(IsReached(goal, ended_for("seconds", 59)));
  EXPECT_FALSE(IsReached(goal, ended_for("target_accuracy", 60)));
  EXPECT_FALSE(IsReached(goal, EndedFor("steps", 20)));
  goal.stop.Clear();
  goal.stop.set_target_accuracy(0.9);
  EXPECT_TRUE(IsReached(goal, ended_for("target_accuracy", 0.9)));
  EXPECT_FALSE(IsReached(goal, ended_for("target_accuracy", 0.8)));
  EXPECT_FALSE(IsReached(goal, ended_for("seconds", 0.9)));
}

TEST(JobGoalTest, APlateauIsReachedByOneOfNoLessPatienceOfTheSameFigure) {
  StopSpec stop;
  stop.mutable_plateau()->set_metric("test_loss");
  stop.mutable_plateau()->set_patience(3);
  stop.mutable_plateau()->set_min_change(0.1);
  JobState job = EndedFor("plateau", 90);
  *job.mutable_stop() = stop;
  const JobGoal same{stop};
  EXPECT_TRUE(IsReached(same, job));
  EXPECT_TRUE(IsStopCondition("plateau"));
  EXPECT_EQ(Describe(same), "stop.plateau.patience 3");
  JobGoal goal = same;
  goal.stop.mutable_plateau()->set_patience(2);
  EXPECT_TRUE(IsReached(goal, job));
  goal.stop.mutable_plateau()->set_patience(4);
  EXPECT_FALSE(IsReached(goal, job));
  goal = same;
  goal.stop.mutable_plateau()->set_metric("test_accuracy");
  EXPECT_FALSE(IsReached(goal, job));
  goal = same;
  goal.stop.mutable_plateau()->set_min_change(0.05);
  EXPECT_FALSE(IsReached(goal, job));
  goal.stop.Clear();
  goal.stop.set_steps(100);
  EXPECT_FALSE(IsReached(goal, job));
  job.set_stop_reason("steps");
  EXPECT_FALSE(IsReached(same, job));
}

TEST(JobGoalTest, APlateauIsReachedByAHistoryOfSoManyBadEvaluations) {
  StopSpec stop;
  stop.mutable_plateau()->set_metric("test_loss");
  stop.mutable_plateau()->set_patience(3);
  EvaluationHistory history;
  history.mutable_stop()->set_metric("test_loss");
  history.mutable_stop()->set_bad_evaluations(2);
  EXPECT_FALSE(IsPlateauReached(stop, history));
  history.mutable_stop()->set_bad_evaluations(3);
  EXPECT_TRUE(IsPlateauReached(stop, history));
  history.mutable_stop()->set_metric("test_accuracy");
  EXPECT_FALSE(IsPlateauReached(stop, history));
  EXPECT_FALSE(IsPlateauReached(StopSpec(), EvaluationHistory()));
}

TEST(JobGoalTest, AnEndBeforeTheEndReachesNothing) {
  JobGoal goal;
  goal.stop.set_steps(20);
  EXPECT_FALSE(IsReached(goal, EndedFor("interrupted")));
  EXPECT_FALSE(
      IsReached(goal, EndedFor("interrupted (/job:worker/task:0)", 19)));
  EXPECT_FALSE(IsReached(goal, EndedFor("failed: broken")));
  EXPECT_FALSE(IsReached(goal, EndedFor("non_finite")));
  EXPECT_TRUE(IsReached(goal, EndedFor("boredom"))) << "a hook's reason";
  EXPECT_TRUE(IsReached(goal, EndedFor("done (/job:worker/task:0)")))
      << "told to a new start of ps task 0";
}

TEST(JobGoalTest, NamesItsConditions) {
  JobGoal goal;
  goal.stop.set_steps(3'000'000);
  goal.stop.set_epochs(1.5);
  EXPECT_EQ(Describe(goal), "stop.steps 3000000 or stop.epochs 1.5");
}

}  // namespace
}  // namespace muster
