#include "worker/task/run_speed.h"

#include <cmath>

#include "gtest/gtest.h"

namespace muster {
namespace {

RunTimes TenSeconds() {
  RunTimes times;
  times.start = absl::UnixEpoch();
  times.entered = times.start + absl::Seconds(1);
  times.first_step = times.start + absl::Seconds(2);
  times.stopped = times.start + absl::Seconds(11);
  times.end = times.start + absl::Seconds(12);
  return times;
}

TEST(RunSpeedTest, CountsThisRunAlone) {
  JobState state;
  state.set_examples(500);
  RunTimes times = TenSeconds();
  times.first_examples = 100;
  TrainingResult result;
  result.start_step = 10;
  result.global_step = 60;
  AddSpeed(state, times, &result);
  EXPECT_EQ(result.steps_per_s, 5);
  EXPECT_EQ(result.examples, 500);
  EXPECT_EQ(result.examples_per_s, 40);
  EXPECT_EQ(result.wall_s, 12);
  EXPECT_EQ(result.time_to_first_step_s, 2);
}

TEST(RunSpeedTest, CountsTheRowsThatWereNotTrainedOnOnce) {
  JobState state;
  TrainingResult result;
  AddSpeed(state, TenSeconds(), &result);
  EXPECT_FALSE(result.examples_left.has_value());
  state.set_stop_reason("epochs");
  state.mutable_stop()->set_epochs(2);
  state.mutable_rows()->set_epoch_rows(100);
  state.mutable_rows()->set_done(192);
  state.mutable_rows()->set_repeated(16);
  state.mutable_rows()->set_skipped(32);
  AddSpeed(state, TenSeconds(), &result);
  EXPECT_EQ(result.examples_repeated, 16);
  EXPECT_EQ(result.examples_skipped, 32);
  EXPECT_EQ(result.examples_left, 8);
}

TEST(RunSpeedTest, DescribesEachWorkerAndAddsTheirDroppedSteps) {
  JobState state;
  for (int i = 0; i < 2; ++i) {
    WorkerState* const worker = state.add_workers();
    worker->mutable_sender()->mutable_task()->set_job("worker");
    worker->mutable_sender()->mutable_task()->set_index(i);
    worker->set_active_steps(20);
    worker->set_active_s(4);
    worker->set_staleness_sum(6);
    worker->set_staleness_count(3);
    worker->set_dropped_steps(i + 1);
  }
  state.mutable_workers(1)->mutable_traffic()->set_bytes_sent(7);
  TrainingResult result;
  AddSpeed(state, TenSeconds(), &result);
  ASSERT_EQ(result.workers.size(), 2);
  EXPECT_EQ(result.workers[1].task, "/job:worker/task:1");
  EXPECT_EQ(result.workers[1].steps_per_s, 5);
  EXPECT_EQ(result.workers[1].staleness, 2);
  EXPECT_EQ(result.workers[1].dropped_steps, 2);
  EXPECT_EQ(result.dropped_steps, 3);
  EXPECT_FALSE(result.workers[0].traffic.has_value());
  EXPECT_EQ(result.workers[1].traffic->bytes_sent(), 7);
}

TEST(RunSpeedTest, TellsWhatTheLastUpdateHad) {
  JobState state;
  TrainingResult result;
  AddSpeed(state, TenSeconds(), &result);
  EXPECT_FALSE(result.update.has_value()) << "not synchronous";
  state.mutable_update()->set_workers(2);
  AddSpeed(state, TenSeconds(), &result);
  EXPECT_EQ(result.update->workers(), 2);
}

TEST(RunSpeedTest, ARunWithoutAStepHasNoRates) {
  JobState state;
  state.add_workers();
  RunTimes times = TenSeconds();
  times.first_step = times.stopped = absl::InfinitePast();
  TrainingResult result;
  AddSpeed(state, times, &result);
  for (const double figure :
       {result.steps_per_s, result.examples_per_s, result.time_to_first_step_s,
        result.workers[0].steps_per_s, result.workers[0].staleness}) {
    EXPECT_FALSE(std::isfinite(figure)) << figure;
  }
}

}  // namespace
}  // namespace muster
