#include "worker/worker_positions.h"

#include <gtest/gtest.h>

#include "common/cluster/task_id.h"

namespace muster {
namespace {

void AddWorker(JobState* state, int index, int64_t position) {
  WorkerState* worker = state->add_workers();
  *worker->mutable_sender()->mutable_task() = MakeTaskId("worker", index);
  worker->set_data_position(position);
  worker->set_steps(position);
  worker->set_examples(10 * position);
}

CheckpointManifest TwoWorkers() {
  JobState state;
  AddWorker(&state, 0, 30);
  AddWorker(&state, 1, 40);
  CheckpointManifest manifest;
  SavePositions(state, &manifest);
  return manifest;
}

TEST(WorkerPositionsTest, SavesTheSumOfExamples) {
  EXPECT_EQ(TwoWorkers().examples(), 700);
}

TEST(WorkerPositionsTest, SameWorkersGoOnWhereEachWas) {
  const auto workers = RestorePositions(
      TwoWorkers(), {MakeTaskId("worker", 0), MakeTaskId("worker", 1)});
  ASSERT_EQ(workers.size(), 2);
  EXPECT_EQ(workers[0].data_position(), 30);
  EXPECT_EQ(workers[1].data_position(), 40);
  EXPECT_EQ(workers[1].steps(), 40);
}

TEST(WorkerPositionsTest, OtherNumberGoesOnFromTheSmallestRow) {
  const auto one = RestorePositions(TwoWorkers(), {MakeTaskId("worker", 0)});
  ASSERT_EQ(one.size(), 1);
  EXPECT_EQ(one[0].data_position(), 60);  // 30 steps of 2 workers.
  const auto three = RestorePositions(
      TwoWorkers(), {MakeTaskId("worker", 0), MakeTaskId("worker", 1),
                     MakeTaskId("worker", 2)});
  ASSERT_EQ(three.size(), 3);
  for (const WorkerState& worker : three) {
    EXPECT_EQ(worker.data_position(), 20);
  }
}

TEST(WorkerPositionsTest, NothingSavedStartsAtZero) {
  const auto workers =
      RestorePositions(CheckpointManifest(), {MakeTaskId("worker", 0)});
  ASSERT_EQ(workers.size(), 1);
  EXPECT_EQ(workers[0].data_position(), 0);
}

}  // namespace
}  // namespace muster
