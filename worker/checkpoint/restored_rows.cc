#include "worker/checkpoint/restored_rows.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/max_count.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/cluster/task_id.h"
#include "common/rows/row_ranges.h"

namespace muster {
namespace {

using Positions = std::vector<WorkerPosition>;

const WorkerPosition* Find(const CheckpointManifest& manifest,
                           const TaskId& task) {
  for (const WorkerPosition& worker : manifest.workers()) {
    if (MakeTaskId(worker.job(), worker.index()) == task) return &worker;
  }
  return nullptr;
}

// "rows" or "stream".
std::string KindOf(RowOrder order) {
  return MakeDataPosition({}, /*step_rows=*/0, order).kind();
}

// The place of an epoch's first row.
absl::StatusOr<int64_t> PlaceOfEpoch(int64_t epoch, int64_t epoch_rows) {
  if (epoch_rows == 0 || epoch <= kMaxCount / epoch_rows) {
    return epoch * epoch_rows;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("rows of the run: epoch ", epoch, " of ", epoch_rows,
                   " rows begins beyond the largest count, ", kMaxCount));
}

// ---- Manifests with positions -------------------------------------------

bool HadStepsOf(int64_t worker_rows, const Positions& workers) {
  return std::all_of(workers.begin(), workers.end(),
                     [worker_rows](const WorkerPosition& worker) {
                       if (worker.steps() == 0) return worker.examples() == 0;
                       return worker.examples() % worker.steps() == 0 &&
                              worker.examples() / worker.steps() == worker_rows;
                     });
}

// Gives workers whose steps were counted positions; returns what there is to
// say. `examples`: of the whole run.
std::string MakePositions(const TakenRows& rows, int64_t examples,
                          Positions* workers) {
  const int64_t step_rows =
      rows.worker_rows * static_cast<int64_t>(workers->size());
  const int64_t epoch_steps =
      step_rows == 0 ? 0 : rows.num_examples / step_rows;
  const bool is_exact =
      epoch_steps > 0 && HadStepsOf(rows.worker_rows, *workers);
  const RowPosition suggested = {
      examples / std::max<int64_t>(rows.num_examples, 1), 0};
  for (WorkerPosition& worker : *workers) {
    RowPosition position = suggested;
    if (is_exact) {
      position.epoch = worker.data_position() / epoch_steps;
      position.rows = worker.data_position() % epoch_steps * step_rows;
    }
    *worker.mutable_position() = MakeDataPosition(position, step_rows);
  }
  if (is_exact || workers->empty()) return "";
  return absl::StrCat(
      "the checkpoint, of an older version, counts steps of other rows than "
      "this training's: the data goes on at the beginning of epoch ",
      suggested.epoch, " (counted from 0), by its ", examples, " examples");
}

absl::StatusOr<RowPosition> SmallestPosition(const Positions& workers,
                                             RowOrder order) {
  std::optional<RowPosition> smallest;
  for (const WorkerPosition& worker : workers) {
    ASSIGN_OR_RETURN(const RowPosition position,
                     ReadRowPosition(worker.position(), order));
    smallest = std::min(smallest.value_or(position), position);
  }
  return smallest.value_or(RowPosition());
}

// A pass of a stream of unknown length begins behind the other examples.
absl::StatusOr<RowLedger> ReadPositions(const CheckpointManifest& manifest,
                                        const TakenRows& rows,
                                        std::string* note) {
  Positions saved(manifest.workers().begin(), manifest.workers().end());
  if (manifest.format_version() < kFirstFormatWithPositions) {
    *note = MakePositions(rows, manifest.examples(), &saved);
  }
  ASSIGN_OR_RETURN(const RowPosition smallest,
                   SmallestPosition(saved, rows.order));
  ASSIGN_OR_RETURN(int64_t first,
                   PlaceOfEpoch(smallest.epoch, rows.num_examples));
  if (rows.num_examples == 0 && smallest.epoch > 0) {
    first = std::max<int64_t>(manifest.examples() - smallest.rows, 0);
  }
  RowLedger ledger;
  ledger.set_front(first + smallest.rows);
  ledger.set_known_from(ledger.front());
  // What faster workers had read beyond it.
  ledger.set_repeated(
      std::max<int64_t>(manifest.examples() - ledger.front(), 0));
  if (rows.order == RowOrder::kStream) {
    StreamPass* const pass = ledger.add_passes();
    pass->set_pass(smallest.epoch);
    pass->set_first(first);
  }
  return ledger;
}

// ---- Manifests with a ledger --------------------------------------------

// A position has the words for a run of the other order.
absl::Status CheckKind(const RowLedger& ledger, RowOrder order) {
  if (ledger.kind().empty()) return absl::OkStatus();
  DataPosition position;
  position.set_kind(ledger.kind());
  return ReadRowPosition(position, order).status();
}

// Of another data set nobody knows which rows were done: goes on at the next
// epoch. Returns what there is to say.
absl::StatusOr<std::string> FitToDataSet(int64_t epoch_rows,
                                         RowLedger* ledger) {
  const int64_t before = ledger->epoch_rows();
  if (before == 0 || before == epoch_rows || ledger->front() == 0) return "";
  const int64_t epoch = (ledger->front() + before - 1) / before;
  int64_t left = epoch * before - ledger->front();
  for (const RowRange& undone : ledger->undone()) left += undone.rows();
  ASSIGN_OR_RETURN(const int64_t first, PlaceOfEpoch(epoch, epoch_rows));
  ledger->set_front(first);
  ledger->set_known_from(first);
  ledger->clear_undone();
  return absl::StrCat(
      "the training set has ", epoch_rows, " examples, and had ", before,
      " at the checkpoint: the data goes on at the beginning of epoch ", epoch,
      " (counted from 0)",
      left == 0 ? ""
                : absl::StrCat(", without ", left, " of the epochs before"));
}

}  // namespace

void SaveRows(const JobState& state, RowLedger ledger, const TakenRows& rows,
              CheckpointManifest* manifest) {
  for (const WorkerState& worker : state.workers()) {
    WorkerPosition* saved = manifest->add_workers();
    saved->set_job(worker.sender().task().job());
    saved->set_index(worker.sender().task().index());
    saved->set_steps(worker.steps());
    saved->set_examples(worker.examples());
  }
  manifest->set_examples(state.examples());
  ledger.set_kind(KindOf(rows.order));
  ledger.set_epoch_rows(rows.num_examples);
  *manifest->mutable_ledger() = std::move(ledger);
}

absl::StatusOr<RestoredRows> RestoreRows(const CheckpointManifest& manifest,
                                         absl::Span<const TaskId> tasks,
                                         const TakenRows& rows) {
  RestoredRows restored;
  if (manifest.has_ledger()) {
    restored.ledger = manifest.ledger();
    RETURN_IF_ERROR(CheckLedger(restored.ledger));
    RETURN_IF_ERROR(CheckKind(restored.ledger, rows.order));
    // A stream's passes are as long as its files say.
    if (rows.order == RowOrder::kPermutation) {
      ASSIGN_OR_RETURN(restored.note,
                       FitToDataSet(rows.num_examples, &restored.ledger));
    }
  } else {
    ASSIGN_OR_RETURN(restored.ledger,
                     ReadPositions(manifest, rows, &restored.note));
  }
  restored.ledger.set_kind(KindOf(rows.order));
  restored.ledger.set_epoch_rows(rows.num_examples);
  for (const TaskId& task : tasks) {
    WorkerState worker;
    *worker.mutable_sender()->mutable_task() = task;
    if (const WorkerPosition* saved = Find(manifest, task); saved != nullptr) {
      worker.set_steps(saved->steps());
      worker.set_examples(saved->examples());
    }
    restored.workers.push_back(std::move(worker));
  }
  return restored;
}

}  // namespace muster
