#include "worker/ctl/inspect_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/safetensors_writer.h"
#include "common/checkpoint/train_dir.h"
#include "common/cluster/task_id.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "worker/ctl/checkpoint_diff.h"
#include "worker/session/session_messages.h"

namespace muster {
namespace {

constexpr int64_t kPieceBytes = 1 << 20;
constexpr size_t kMaxKindChars = 40;

std::string ShapeOf(const CheckpointPiece& piece) {
  if (piece.slot == kUpdateCountsSlot) {
    return absl::StrCat("[", piece.elements, "]");
  }
  return absl::StrCat("[", absl::StrJoin(piece.parameter.shape(), ", "), "]");
}

// "whole  step=100 saved=... trained=12s 8 parameters 13.1 MB".
std::string Summary(const CheckpointReader& reader) {
  const CheckpointManifest& manifest = reader.manifest();
  int64_t bytes = 0;
  for (const CheckpointFile& file : manifest.files()) bytes += file.bytes();
  return absl::StrFormat(
      "step=%d epoch=%d saved=%s trained=%s parameters=%d bytes=%d",
      manifest.global_step(), manifest.model_epoch(),
      manifest.saved_unix_ms() == 0
          ? "unknown"
          : absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                             absl::FromUnixMillis(manifest.saved_unix_ms()),
                             absl::UTCTimeZone()),
      absl::FormatDuration(
          absl::Floor(absl::Seconds(manifest.trained_s()), absl::Seconds(1))),
      manifest.parameters_size(), bytes);
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
        piece.parameter.kind() == STATE ? " state" : "");
  }
  return text;
}

std::string DescribePosition(const CheckpointManifest& manifest,
                             const WorkerPosition& worker) {
  if (manifest.format_version() < kFirstFormatWithPositions) {
    return absl::StrCat("data_position=", worker.data_position());
  }
  const DataPosition& position = worker.position();
  return absl::StrFormat("position=%s epoch=%d rows=%d step_rows=%d",
                         EscapeForLog(position.kind(), kMaxKindChars),
                         position.epoch(), position.rows(),
                         position.step_rows());
}

std::string Describe(const CheckpointReader& reader) {
  const CheckpointManifest& manifest = reader.manifest();
  std::string text = absl::StrFormat(
      "%s: whole\n  %s\n  format=%d muster=%s fingerprint=%016x seed=%d "
      "examples=%d optimizer=%s\n",
      reader.path(), Summary(reader), manifest.format_version(),
      manifest.muster_version(), manifest.fingerprint(), manifest.seed(),
      manifest.examples(), manifest.optimizer().name());
  for (const WorkerPosition& worker : manifest.workers()) {
    absl::StrAppendFormat(&text, "  %s %s steps=%d examples=%d\n",
                          TaskName(MakeTaskId(worker.job(), worker.index())),
                          DescribePosition(manifest, worker), worker.steps(),
                          worker.examples());
  }
  for (const ShardCut& shard : manifest.shards()) {
    absl::StrAppendFormat(&text, "  %s version=%d marks=%d\n",
                          TaskName(MakeTaskId(kPsJob, shard.ps_task())),
                          shard.version(), shard.marks_size());
  }
  return text + Table(reader);
}

// The steps of a train_dir; nothing if `path` is one checkpoint.
absl::StatusOr<std::optional<std::vector<int64_t>>> StepsIn(
    FileSystem* file_system, const std::string& path) {
  const absl::StatusOr<std::vector<std::string>> names =
      file_system->List(path);
  if (!names.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is no folder: ", names.status().message()));
  }
  const auto has = [&names](const char* name) {
    return std::find(names->begin(), names->end(), name) != names->end();
  };
  if (has(kManifestFile) || has(kParametersFile)) return std::nullopt;
  const size_t slash = path.rfind('/');
  const std::string own =
      slash == std::string::npos ? path : path.substr(slash + 1);
  if (ParseCheckpointName(own).has_value()) return std::nullopt;
  ASSIGN_OR_RETURN(std::vector<int64_t> steps,
                   ListCheckpoints(file_system, path));
  if (steps.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path,
        "' is neither a checkpoint nor a train_dir with checkpoints"));
  }
  return steps;
}

void ListAll(FileSystem* file_system, const std::string& train_dir,
             const std::vector<int64_t>& newest_first, Inspection* inspection) {
  for (auto step = newest_first.rbegin(); step != newest_first.rend(); ++step) {
    const std::string name = CheckpointName(*step);
    const auto reader =
        CheckpointReader::Open(file_system, absl::StrCat(train_dir, "/", name));
    if (!reader.ok()) inspection->exit_code = kExitBadCheckpoint;
    absl::StrAppend(
        &inspection->text, name,
        reader.ok() ? absl::StrCat("  whole  ", Summary(**reader))
                    : absl::StrCat("  NOT USABLE  ", reader.status().message()),
        "\n");
  }
}

// The checkpoint at `path`, or the newest whole one in it; older ones than the
// newest are said in `text`.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenOne(
    FileSystem* file_system, const std::string& path, std::string* text) {
  ASSIGN_OR_RETURN(const std::optional<std::vector<int64_t>> steps,
                   StepsIn(file_system, path));
  if (!steps.has_value()) return CheckpointReader::Open(file_system, path);
  ASSIGN_OR_RETURN(CheckpointReader::Newest newest,
                   CheckpointReader::OpenNewest(file_system, path));
  for (const std::string& warning : newest.warnings) {
    absl::StrAppend(text, warning, "\n");
  }
  return std::move(newest.reader);
}

// The parameters in the order of the file that is to be written.
absl::Status CopyParameters(const CheckpointReader& reader,
                            SafetensorsWriter* writer) {
  std::string buffer;
  for (const SafetensorsEntry& entry : writer->entries()) {
    const int64_t elements = entry.shape.num_elements();
    const auto size = static_cast<int64_t>(SizeOf(entry.dtype));
    const int64_t longest = kPieceBytes / size;
    for (int64_t offset = 0; offset < elements; offset += longest) {
      const int64_t count = std::min(longest, elements - offset);
      buffer.resize(static_cast<size_t>(count * size));
      RETURN_IF_ERROR(
          reader.Read(entry.name, "", offset, count, buffer.data()));
      RETURN_IF_ERROR(writer->Append(buffer));
    }
  }
  return writer->Finish();
}

absl::Status Export(FileSystem* file_system, const CheckpointReader& reader,
                    const std::string& path) {
  std::vector<SafetensorsEntry> tensors;
  for (const CheckpointPiece& piece : reader.pieces()) {
    if (!piece.slot.empty()) continue;
    SafetensorsEntry entry;
    entry.name = piece.parameter.name();
    entry.dtype = piece.dtype;
    ASSIGN_OR_RETURN(entry.shape, Shape::Create(piece.parameter.shape()));
    tensors.push_back(std::move(entry));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsWriter> writer,
                   SafetensorsWriter::Create(file_system, path, tensors));
  const absl::Status copied = CopyParameters(reader, writer.get());
  if (copied.ok()) return absl::OkStatus();
  writer.reset();
  file_system->Remove(path).IgnoreError();  // The first error is the one.
  return Annotate(copied, "export");
}

absl::Status Inspect(FileSystem* file_system, const InspectOptions& options,
                     Inspection* inspection) {
  const bool only_lists =
      options.diff_with.empty() && options.export_to.empty();
  if (only_lists) {
    ASSIGN_OR_RETURN(const std::optional<std::vector<int64_t>> steps,
                     StepsIn(file_system, options.path));
    if (steps.has_value()) {
      ListAll(file_system, options.path, *steps, inspection);
      return absl::OkStatus();
    }
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                   OpenOne(file_system, options.path, &inspection->text));
  if (only_lists) inspection->text += Describe(*reader);
  if (!options.diff_with.empty()) {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<CheckpointReader> other,
        OpenOne(file_system, options.diff_with, &inspection->text));
    ASSIGN_OR_RETURN(const CheckpointDiff diff,
                     CompareCheckpoints(*reader, *other));
    inspection->text += diff.text;
    if (!diff.equal) inspection->exit_code = kExitFailed;
  }
  if (options.export_to.empty()) return absl::OkStatus();
  const absl::Status exported = Export(file_system, *reader, options.export_to);
  if (absl::IsNotFound(exported) || absl::IsAlreadyExists(exported)) {
    return absl::InvalidArgumentError(absl::StrCat(
        exported.message(), "; --export_to wants a new file in a folder"));
  }
  RETURN_IF_ERROR(exported);
  absl::StrAppend(&inspection->text, "exported the parameters of ",
                  reader->path(), " to ", options.export_to, "\n");
  return absl::OkStatus();
}

}  // namespace

Inspection InspectCheckpoint(FileSystem* file_system,
                             const InspectOptions& options) {
  Inspection inspection;
  const absl::Status status = Inspect(file_system, options, &inspection);
  if (status.ok()) return inspection;
  inspection.error = absl::StrCat(status.message(), "\n");
  // A missing file is a checkpoint that is not whole: its folder was listed.
  const bool unusable = absl::IsDataLoss(status) || absl::IsNotFound(status) ||
                        absl::IsFailedPrecondition(status);
  inspection.exit_code = unusable ? kExitBadCheckpoint : kExitBadConfig;
  return inspection;
}

}  // namespace muster
