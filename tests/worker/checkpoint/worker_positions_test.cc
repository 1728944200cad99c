#include "worker/checkpoint/worker_positions.h"

#include <algorithm>
#include <map>
#include <string>

#include "common/checkpoint/manifest.h"
#include "common/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/input/data_order.h"
#include "worker/input/row_position.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kExamples = 200;
// Rows of a worker's step.
constexpr int64_t kRows = 5;

std::vector<TaskId> Tasks(int count) {
  std::vector<TaskId> tasks;
  for (int i = 0; i < count; ++i) tasks.push_back(MakeTaskId("worker", i));
  return tasks;
}

void AddWorker(JobState* state, int index, const DataPosition& position,
               int64_t steps) {
  WorkerState* worker = state->add_workers();
  *worker->mutable_sender()->mutable_task() = MakeTaskId("worker", index);
  *worker->mutable_position() = position;
  worker->set_steps(steps);
  worker->set_examples(kRows * steps);
}

CheckpointManifest Save(const JobState& state, int tasks) {
  CheckpointManifest manifest;
  manifest.set_format_version(kCheckpointFormatVersion);
  SavePositions(state, Tasks(tasks), &manifest);
  return manifest;
}

// After 3 and 4 steps.
CheckpointManifest TwoWorkers() {
  JobState state;
  AddWorker(&state, 0, MakeDataPosition({0, 30}, 10), 3);
  AddWorker(&state, 1, MakeDataPosition({0, 40}, 10), 4);
  state.set_examples(100);
  return Save(state, 2);
}

RestoredPositions Restore(const CheckpointManifest& manifest, int tasks,
                          int64_t worker_rows) {
  auto restored =
      RestorePositions(manifest, Tasks(tasks), {kExamples, worker_rows});
  EXPECT_THAT(restored, IsOk());
  return restored.value_or(RestoredPositions());
}

RowPosition At(const DataPosition& position) {
  return ReadRowPosition(position).value_or(RowPosition{-1, -1});
}

TEST(WorkerPositionsTest, SavesTheExamplesOfThoseThatAreInNoList) {
  EXPECT_EQ(TwoWorkers().examples(), 100);
}

TEST(WorkerPositionsTest, TheSameStepsGoOnWhereEachWas) {
  const RestoredPositions restored = Restore(TwoWorkers(), 2, kRows);
  ASSERT_EQ(restored.workers.size(), 2);
  EXPECT_EQ(At(restored.workers[0].position()), (RowPosition{0, 30}));
  EXPECT_EQ(At(restored.workers[1].position()), (RowPosition{0, 40}));
  EXPECT_EQ(restored.workers[1].steps(), 4);
  EXPECT_EQ(restored.workers[1].examples(), 20);
  EXPECT_EQ(At(restored.start), (RowPosition{0, 30}));
}

TEST(WorkerPositionsTest, OthersGoOnFromTheSmallest) {
  for (const auto& [tasks, rows] :
       {std::pair(1, kRows), std::pair(1, 2 * kRows), std::pair(3, kRows),
        std::pair(2, 2 * kRows)}) {
    const RestoredPositions restored = Restore(TwoWorkers(), tasks, rows);
    ASSERT_EQ(restored.workers.size(), tasks);
    for (const WorkerState& worker : restored.workers) {
      EXPECT_EQ(At(worker.position()), (RowPosition{0, 30}));
      EXPECT_EQ(worker.position().step_rows(), tasks * rows);
    }
  }
}

TEST(WorkerPositionsTest, AnEpochAheadIsAhead) {
  JobState state;
  AddWorker(&state, 0, MakeDataPosition({1, 0}, 10), 20);
  AddWorker(&state, 1, MakeDataPosition({0, 190}, 10), 19);
  EXPECT_EQ(At(Restore(Save(state, 2), 1, kRows).start), (RowPosition{0, 190}));
}

// Its rows are still to be read.
TEST(WorkerPositionsTest, AWorkerThatHasNeverComeIsAtTheBeginning) {
  JobState state;
  AddWorker(&state, 0, MakeDataPosition({0, 30}, 10), 3);
  const CheckpointManifest manifest = Save(state, 2);
  RestoredPositions restored = Restore(manifest, 2, kRows);
  EXPECT_EQ(At(restored.workers[0].position()), (RowPosition{0, 30}));
  EXPECT_EQ(At(restored.workers[1].position()), (RowPosition{0, 0}));
  restored = Restore(manifest, 1, 2 * kRows);
  EXPECT_EQ(At(restored.workers[0].position()), (RowPosition{0, 0}));
}

TEST(WorkerPositionsTest, NothingSavedStartsAtTheBeginning) {
  CheckpointManifest manifest;
  manifest.set_format_version(kCheckpointFormatVersion);
  const RestoredPositions restored = Restore(manifest, 1, kRows);
  ASSERT_EQ(restored.workers.size(), 1);
  EXPECT_EQ(At(restored.workers[0].position()), (RowPosition{0, 0}));
}

TEST(WorkerPositionsTest, NamesAnUnknownKind) {
  CheckpointManifest manifest = TwoWorkers();
  manifest.mutable_workers(1)->mutable_position()->set_kind("tokens");
  EXPECT_THAT(
      RestorePositions(manifest, Tasks(2), {kExamples, kRows}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'tokens'")));
}

// ---- Manifests that count steps ---------------------------------------------

CheckpointManifest OldManifest() {
  CheckpointManifest manifest;
  manifest.set_format_version(2);
  manifest.set_examples(2 * kRows * 23);
  for (int i = 0; i < 2; ++i) {
    WorkerPosition* const worker = manifest.add_workers();
    worker->set_job("worker");
    worker->set_index(i);
    worker->set_data_position(23 + i);
    worker->set_steps(23);
    worker->set_examples(kRows * 23);
  }
  return manifest;
}

TEST(WorkerPositionsTest, StepsOfTheSameRowsAreThoseRows) {
  const RestoredPositions restored = Restore(OldManifest(), 2, kRows);
  EXPECT_EQ(At(restored.workers[0].position()), (RowPosition{1, 30}));
  EXPECT_EQ(At(restored.workers[1].position()), (RowPosition{1, 40}));
  EXPECT_EQ(restored.note, "");
  EXPECT_EQ(At(Restore(OldManifest(), 3, kRows).start), (RowPosition{1, 30}));
}

TEST(WorkerPositionsTest, StepsOfOtherRowsAreTheEpochOfTheExamples) {
  const RestoredPositions restored = Restore(OldManifest(), 2, 2 * kRows);
  for (const WorkerState& worker : restored.workers) {
    EXPECT_EQ(At(worker.position()), (RowPosition{1, 0}));
  }
  EXPECT_THAT(restored.note, HasSubstr("the beginning of epoch 1 "));
}

// ---- What a restore leaves out, and repeats ---------------------------------

// The make-up of a run's steps.
struct Shape {
  int64_t batch_size;
  int64_t towers;
  int64_t accumulate;
  int workers;

  int64_t worker_rows() const { return batch_size * towers * accumulate; }
  int64_t step_rows() const { return worker_rows() * workers; }
  std::string Text() const {
    return absl::StrCat(workers, " workers of ", towers, " towers with ",
                        accumulate, " batches of ", batch_size);
  }
};

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const int64_t batch_size : {3, 4}) {
    for (const int64_t towers : {1, 2}) {
      for (const int64_t accumulate : {1, 3}) {
        for (const int workers : {1, 2, 3}) {
          shapes.push_back({batch_size, towers, accumulate, workers});
        }
      }
    }
  }
  return shapes;
}

DataOrder OrderOf(const Shape& shape, int worker) {
  DataOrder::Options options;
  options.batch_size = shape.batch_size;
  options.batches_per_step = shape.towers * shape.accumulate;
  options.worker_index = worker;
  options.num_workers = shape.workers;
  return *DataOrder::Create(kExamples, options);
}

// How often each row of epoch 0 is read.
using Reads = std::map<int64_t, int>;

// The state of a run whose worker i has made steps + i * ahead steps.
JobState Begin(const Shape& shape, int64_t steps, int64_t ahead, Reads* reads) {
  JobState state;
  for (int i = 0; i < shape.workers; ++i) {
    DataOrder order = OrderOf(shape, i);
    RowPosition position;
    for (int64_t step = 0; step < steps + i * ahead; ++step) {
      const absl::Span<const int64_t> rows = order.Rows(position);
      position = order.After(position);
      if (position.epoch > 0) continue;
      for (const int64_t row : rows) ++(*reads)[row];
    }
    AddWorker(&state, i, MakeDataPosition(position, shape.step_rows()), steps);
  }
  return state;
}

// From there to the end of the epoch.
void GoOn(const Shape& shape, const RestoredPositions& restored, Reads* reads) {
  for (int i = 0; i < shape.workers; ++i) {
    DataOrder order = OrderOf(shape, i);
    RowPosition position = At(restored.workers[i].position());
    while (order.After(position).epoch == 0) {
      for (const int64_t row : order.Rows(position)) ++(*reads)[row];
      position = order.After(position);
    }
  }
}

// But for some of the last rows of the epoch, too few for a step of the new
// run.
void ExpectNothingIsLeftOut(const Shape& shape, const Reads& reads) {
  const auto permutation = EpochPermutation(kExamples, 0, 0, /*shuffle=*/true);
  for (int64_t i = 0; i <= kExamples - shape.step_rows(); ++i) {
    EXPECT_EQ(reads.count(permutation[i]), 1) << "row " << i;
  }
}

TEST(WorkerPositionsTest, InLockStepEachRowIsReadOnceWhateverAStepIs) {
  for (const Shape& before : Shapes()) {
    for (const Shape& after : Shapes()) {
      SCOPED_TRACE(absl::StrCat(before.Text(), ", then ", after.Text()));
      Reads reads;
      const JobState state = Begin(before, /*steps=*/2, /*ahead=*/0, &reads);
      GoOn(after,
           Restore(Save(state, before.workers), after.workers,
                   after.worker_rows()),
           &reads);
      ExpectNothingIsLeftOut(after, reads);
      for (const auto& [row, times] : reads) EXPECT_EQ(times, 1) << row;
    }
  }
}

TEST(WorkerPositionsTest, OutOfLockStepNothingIsLeftOutWhateverAStepIs) {
  for (const Shape& before : Shapes()) {
    for (const Shape& after : Shapes()) {
      SCOPED_TRACE(absl::StrCat(before.Text(), ", then ", after.Text()));
      Reads reads;
      const JobState state = Begin(before, /*steps=*/1, /*ahead=*/1, &reads);
      GoOn(after,
           Restore(Save(state, before.workers), after.workers,
                   after.worker_rows()),
           &reads);
      ExpectNothingIsLeftOut(after, reads);
    }
  }
}

}  // namespace
}  // namespace muster
