// musterctl checkpoint ls: the checkpoints of a train_dir, or the tensors of
// one.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_choice.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "common/cluster/task_id.h"
#include "common/rows/row_ranges.h"
#include "common/tensor/dtype.h"
#include "worker/ctl/checkpoint_path.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

constexpr size_t kMaxKindChars = 40;
// As many ranges as a line shows.
constexpr int kMaxRanges = 4;

std::string ShapeOf(const CheckpointPiece& piece) {
  if (piece.slot == kUpdateCountsSlot) {
    return absl::StrCat("[", piece.elements, "]");
  }
  return absl::StrCat("[", absl::StrJoin(piece.parameter.shape(), ", "), "]");
}

std::string Table(const CheckpointReader& reader) {
  size_t width = 0;
  for (const CheckpointPiece& piece : reader.pieces()) {
    width = std::max(width, PieceName(piece).size());
  }
  std::string text;
  for (size_t i = 0; i < reader.pieces().size(); ++i) {
    const CheckpointPiece& piece = reader.pieces()[i];
    // The manifest has them in the same order: Open compared the names.
    absl::StrAppendFormat(
        &text, "  %-*s  %-8s %10d bytes  crc32c=%08x  %s%s\n",
        static_cast<int>(width), PieceName(piece), DataTypeName(piece.dtype),
        piece.size_bytes,
        reader.manifest().tensors(static_cast<int>(i)).crc32c(), ShapeOf(piece),
        piece.parameter.kind() == STATE    ? " state"
        : piece.parameter.kind() == FROZEN ? " frozen"
                                           : "");
  }
  return text;
}

std::string Tables(const CheckpointManifest& manifest) {
  std::string text;
  for (const SavedTable& table : manifest.tables()) {
    absl::StrAppend(
        &text, "  table ", table.definition().name(), "  rows=", table.rows(),
        " dim=", table.definition().dim(),
        " rule=", EscapeForLog(table.definition().optimizer().name(), 40),
        " slots=[", absl::StrJoin(table.slots(), ", "), "]\n");
  }
  return text;
}

// "" of a manifest with a ledger.
std::string DescribePosition(const CheckpointManifest& manifest,
                             const WorkerPosition& worker) {
  if (manifest.has_ledger()) return "";
  if (manifest.format_version() < kFirstFormatWithPositions) {
    return absl::StrCat("data_position=", worker.data_position(), " ");
  }
  const DataPosition& position = worker.position();
  return absl::StrFormat("position=%s epoch=%d rows=%d step_rows=%d ",
                         EscapeForLog(position.kind(), kMaxKindChars),
                         position.epoch(), position.rows(),
                         position.step_rows());
}

// "  rows done=35: all before 40 (epoch 0, row 40 of 200) but 5 (rows 30 to
// 34); 5 trained on twice, 10 passed over".
std::string DescribeLedger(const RowLedger& ledger) {
  RowLease shown;
  int64_t undone = 0;
  for (const RowRange& range : ledger.undone()) {
    undone += range.rows();
    if (shown.ranges_size() < kMaxRanges) *shown.add_ranges() = range;
  }
  std::string text = absl::StrCat("  rows done=", ledger.front() - undone,
                                  ": all before ", ledger.front());
  if (ledger.epoch_rows() > 0) {
    absl::StrAppend(&text, " (epoch ", ledger.front() / ledger.epoch_rows(),
                    ", row ", ledger.front() % ledger.epoch_rows(), " of ",
                    ledger.epoch_rows(), ")");
  }
  if (undone > 0) {
    const int more = ledger.undone_size() - shown.ranges_size();
    absl::StrAppend(&text, " but ", undone, " (", DescribeRows(shown),
                    more > 0 ? absl::StrCat(" and ", more, " more ranges") : "",
                    ")");
  }
  return absl::StrCat(text, "; ", ledger.repeated(), " trained on twice, ",
                      ledger.skipped(), " passed over\n");
}

std::string Describe(const CheckpointReader& reader) {
  const CheckpointManifest& manifest = reader.manifest();
  std::string text = absl::StrFormat(
      "%s: whole\n  %s\n  format=%d muster=%s fingerprint=%016x seed=%d "
      "examples=%d optimizer=%s\n",
      reader.path(), SummaryOf(reader), manifest.format_version(),
      manifest.muster_version(), manifest.fingerprint(), manifest.seed(),
      manifest.examples(), manifest.optimizer().name());
  if (manifest.has_ledger()) text += DescribeLedger(manifest.ledger());
  for (const WorkerPosition& worker : manifest.workers()) {
    absl::StrAppendFormat(&text, "  %s %ssteps=%d examples=%d\n",
                          TaskName(MakeTaskId(worker.job(), worker.index())),
                          DescribePosition(manifest, worker), worker.steps(),
                          worker.examples());
  }
  for (const ShardCut& shard : manifest.shards()) {
    absl::StrAppendFormat(&text, "  %s version=%d marks=%d\n",
                          TaskName(MakeTaskId(kPsJob, shard.ps_task())),
                          shard.version(), shard.marks_size());
  }
  return text + Table(reader) + Tables(manifest);
}

// "best   ckpt-000000001200  test_accuracy=0.9146"; "" if none is kept.
std::string DescribeBest(FileSystem* file_system, const std::string& path) {
  const auto best = FindBestCheckpoint(file_system, WithoutLinks(path));
  if (!best.ok() || !best->has_value()) return "";
  return absl::StrFormat("best   %s  %s=%.9g\n",
                         CheckpointName((*best)->best_step()),
                         (*best)->metric(), (*best)->best());
}

absl::Status List(const VerbCall& call, VerbResult* result) {
  const std::string& path = call.arguments[0];
  ASSIGN_OR_RETURN(const auto paths, CheckpointsIn(call.file_system, path));
  if (paths.has_value()) {
    VerifyCheckpoints(call, *paths, result);
    result->out += DescribeBest(call.file_system, path);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                   OpenCheckpoint(call, path));
  result->out += Describe(*reader);
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "checkpoint ls",
    {"PATH",
     "checks and lists the checkpoints of a train_dir and names its best one,\n"
     "  or lists the tensors of one. Ends with 3 if one is not whole.",
     {},
     1,
     1,
     &List});

}  // namespace
}  // namespace muster
