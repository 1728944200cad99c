#include "worker/checkpoint/restored_rows.h"

#include <utility>

#include "common/base/max_count.h"
#include "common/checkpoint/manifest.h"
#include "common/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/input/row_position.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kExamples = 200;
// Rows of a worker's step.
constexpr int64_t kRows = 5;
constexpr TakenRows kTaken = {kExamples, kRows};
constexpr TakenRows kStream = {/*num_examples=*/0, kRows, RowOrder::kStream};

std::vector<TaskId> Tasks(int count) {
  std::vector<TaskId> tasks;
  for (int i = 0; i < count; ++i) tasks.push_back(MakeTaskId("worker", i));
  return tasks;
}

// After 3 steps of worker 0 and 4 of worker 1, of which rows 30 to 34 are not
// done.
CheckpointManifest TwoWorkers() {
  JobState state;
  for (int i = 0; i < 2; ++i) {
    WorkerState* const worker = state.add_workers();
    *worker->mutable_sender()->mutable_task() = MakeTaskId("worker", i);
    worker->set_steps(3 + i);
    worker->set_examples(kRows * (3 + i));
  }
  state.set_examples(100);
  RowLedger ledger;
  ledger.set_front(40);
  ledger.set_repeated(5);
  ledger.set_skipped(10);
  RowRange* const undone = ledger.add_undone();
  undone->set_first(30);
  undone->set_rows(5);
  CheckpointManifest manifest;
  manifest.set_format_version(kCheckpointFormatVersion);
  SaveRows(state, ledger, kTaken, &manifest);
  return manifest;
}

RestoredRows Restore(const CheckpointManifest& manifest, int tasks,
                     const TakenRows& rows = kTaken) {
  auto restored = RestoreRows(manifest, Tasks(tasks), rows);
  EXPECT_THAT(restored, IsOk());
  return restored.value_or(RestoredRows());
}

TEST(RestoredRowsTest, SavesTheExamplesOfThoseThatAreInNoList) {
  EXPECT_EQ(TwoWorkers().examples(), 100);
}

TEST(RestoredRowsTest, AnyWorkers_GoOnWithTheRowsThatAreLeft) {
  for (const int tasks : {1, 2, 7}) {
    const RestoredRows restored = Restore(TwoWorkers(), tasks);
    ASSERT_EQ(restored.workers.size(), tasks);
    EXPECT_EQ(restored.ledger.front(), 40);
    ASSERT_EQ(restored.ledger.undone_size(), 1);
    EXPECT_EQ(restored.ledger.undone(0).first(), 30);
    EXPECT_EQ(restored.ledger.repeated(), 5);
    EXPECT_EQ(restored.ledger.skipped(), 10);
    EXPECT_EQ(restored.note, "");
  }
}

TEST(RestoredRowsTest, Workers_KeepTheirCounts) {
  const RestoredRows restored = Restore(TwoWorkers(), 3);
  ASSERT_EQ(restored.workers.size(), 3);
  EXPECT_EQ(restored.workers[1].steps(), 4);
  EXPECT_EQ(restored.workers[1].examples(), 20);
  EXPECT_EQ(restored.workers[2].steps(), 0);
}

TEST(RestoredRowsTest, StepsOfOtherRows_GoOnAtTheSameRow) {
  EXPECT_EQ(Restore(TwoWorkers(), 2, {kExamples, 7}).ledger.front(), 40);
}

TEST(RestoredRowsTest, OtherDataSetSize_BeginsTheNextEpochAndSaysSo) {
  const RestoredRows restored = Restore(TwoWorkers(), 2, {300, kRows});
  EXPECT_EQ(restored.ledger.front(), 300);
  EXPECT_EQ(restored.ledger.known_from(), 300);
  EXPECT_EQ(restored.ledger.undone_size(), 0);
  EXPECT_EQ(restored.ledger.epoch_rows(), 300);
  EXPECT_EQ(restored.ledger.repeated(), 5);
  EXPECT_THAT(restored.note,
              AllOf(HasSubstr("has 300 examples, and had 200"),
                    HasSubstr("the beginning of epoch 1 (counted from 0), "
                              "without 165 of the epochs before")));
}

TEST(RestoredRowsTest, OtherDataSetSizeAtTheEndOfAnEpoch_LeavesNothingOut) {
  CheckpointManifest manifest = TwoWorkers();
  manifest.mutable_ledger()->clear_undone();
  manifest.mutable_ledger()->set_front(2 * kExamples);
  const RestoredRows restored = Restore(manifest, 2, {50, kRows});
  EXPECT_EQ(restored.ledger.front(), 100);
  EXPECT_THAT(restored.note, AllOf(HasSubstr("beginning of epoch 2"),
                                   Not(HasSubstr("without"))));
}

TEST(RestoredRowsTest, OtherDataSetSizeBeforeTheFirstStep_IsNotSaid) {
  CheckpointManifest manifest = TwoWorkers();
  manifest.mutable_ledger()->clear_undone();
  manifest.mutable_ledger()->set_front(0);
  const RestoredRows restored = Restore(manifest, 2, {300, kRows});
  EXPECT_EQ(restored.ledger.epoch_rows(), 300);
  EXPECT_EQ(restored.note, "");
}

TEST(RestoredRowsTest, NothingSaved_StartsAtTheBeginning) {
  CheckpointManifest manifest;
  manifest.set_format_version(kCheckpointFormatVersion);
  const RestoredRows restored = Restore(manifest, 1);
  ASSERT_EQ(restored.workers.size(), 1);
  EXPECT_EQ(restored.ledger.front(), 0);
  EXPECT_EQ(restored.ledger.kind(), "rows");
}

TEST(RestoredRowsTest, LedgerThatIsNone_IsRefused) {
  CheckpointManifest manifest = TwoWorkers();
  *manifest.mutable_ledger()->add_undone() = manifest.ledger().undone(0);
  EXPECT_THAT(
      RestoreRows(manifest, Tasks(2), kTaken),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("undone")));
}

TEST(RestoredRowsTest, RowsOfTheOtherOrder_AreRefusedWithWhatToDo) {
  EXPECT_THAT(RestoreRows(TwoWorkers(), Tasks(2), kStream),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("began without input.stream")));
  CheckpointManifest manifest = TwoWorkers();
  manifest.mutable_ledger()->set_kind("stream");
  EXPECT_THAT(RestoreRows(manifest, Tasks(2), kTaken),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("began with input.stream")));
}

TEST(RestoredRowsTest, LedgerOfAStream_KeepsItsPasses) {
  JobState state;
  RowLedger ledger;
  ledger.set_front(40);
  StreamPass* const pass = ledger.add_passes();
  pass->set_pass(2);
  pass->set_first(31);
  CheckpointManifest manifest;
  manifest.set_format_version(kCheckpointFormatVersion);
  SaveRows(state, ledger, kStream, &manifest);
  EXPECT_EQ(manifest.ledger().kind(), "stream");
  const RestoredRows restored = Restore(manifest, 1, kStream);
  EXPECT_EQ(restored.ledger.front(), 40);
  ASSERT_EQ(restored.ledger.passes_size(), 1);
  EXPECT_EQ(restored.ledger.passes(0).first(), 31);
}

// ---- Manifests with a position for each worker ------------------------------

CheckpointManifest WithPositions(RowPosition a, RowPosition b,
                                 RowOrder order = RowOrder::kPermutation) {
  CheckpointManifest manifest;
  manifest.set_format_version(6);
  manifest.set_examples(100);
  for (const RowPosition& position : {a, b}) {
    WorkerPosition* const worker = manifest.add_workers();
    worker->set_job("worker");
    worker->set_index(manifest.workers_size() - 1);
    worker->set_steps(3);
    *worker->mutable_position() = MakeDataPosition(position, 10, order);
  }
  return manifest;
}

TEST(RestoredRowsTest, Positions_AreDoneUpToTheSmallest) {
  for (const int format_version : {3, 4, 5, 6}) {
    CheckpointManifest manifest = WithPositions({0, 30}, {0, 40});
    manifest.set_format_version(format_version);
    const RestoredRows restored = Restore(manifest, 2);
    EXPECT_EQ(restored.ledger.front(), 30) << format_version;
    EXPECT_EQ(restored.ledger.known_from(), 30) << format_version;
    EXPECT_EQ(restored.ledger.undone_size(), 0);
    EXPECT_EQ(restored.ledger.epoch_rows(), kExamples);
    EXPECT_EQ(restored.workers[1].steps(), 3);
    EXPECT_EQ(restored.note, "");
  }
}

TEST(RestoredRowsTest, PositionAnEpochAhead_IsAhead) {
  EXPECT_EQ(Restore(WithPositions({1, 0}, {0, 190}), 1).ledger.front(), 190);
  EXPECT_EQ(Restore(WithPositions({1, 0}, {2, 190}), 1).ledger.front(),
            kExamples);
}

// Its rows are still to be read.
TEST(RestoredRowsTest, WorkerThatHasNeverCome_IsAtTheBeginning) {
  CheckpointManifest manifest = WithPositions({0, 30}, {0, 30});
  manifest.mutable_workers(1)->clear_position();
  EXPECT_EQ(Restore(manifest, 2).ledger.front(), 0);
}

TEST(RestoredRowsTest, PositionOfAnUnknownKind_IsNamed) {
  CheckpointManifest manifest = WithPositions({0, 30}, {0, 40});
  manifest.mutable_workers(1)->mutable_position()->set_kind("tokens");
  EXPECT_THAT(
      RestoreRows(manifest, Tasks(2), kTaken),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'tokens'")));
}

TEST(RestoredRowsTest, PositionBeyondAllCounts_IsRefused) {
  EXPECT_THAT(
      RestoreRows(WithPositions({kMaxCount, 0}, {kMaxCount, 0}), Tasks(2),
                  kTaken),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("largest count")));
}

TEST(RestoredRowsTest, PositionInAStream_IsInItsPass) {
  const RestoredRows restored =
      Restore(WithPositions({2, 30}, {2, 40}, RowOrder::kStream), 2, kStream);
  ASSERT_EQ(restored.ledger.passes_size(), 1);
  const StreamPass& pass = restored.ledger.passes(0);
  EXPECT_EQ(pass.pass(), 2);
  EXPECT_EQ(pass.first(), 70) << "behind the examples of the passes before";
  EXPECT_EQ(restored.ledger.front(), pass.first() + 30);
}

// ---- Manifests that count steps ---------------------------------------------

CheckpointManifest OldManifest(int format_version) {
  CheckpointManifest manifest;
  manifest.set_format_version(format_version);
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

TEST(RestoredRowsTest, StepsOfTheSameRows_AreThoseRows) {
  for (const int format_version : {1, 2}) {
    const RestoredRows restored = Restore(OldManifest(format_version), 2);
    EXPECT_EQ(restored.ledger.front(), kExamples + 30) << format_version;
    EXPECT_EQ(restored.note, "");
  }
}

TEST(RestoredRowsTest, StepsOfOtherRows_AreTheEpochOfTheExamples) {
  const RestoredRows restored =
      Restore(OldManifest(2), 2, {kExamples, 2 * kRows});
  EXPECT_EQ(restored.ledger.front(), kExamples);
  EXPECT_THAT(restored.note, HasSubstr("the beginning of epoch 1 "));
}

}  // namespace
}  // namespace muster
