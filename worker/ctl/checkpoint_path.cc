#include "worker/ctl/checkpoint_path.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "common/process/exit_code.h"

namespace muster {
namespace {

std::string LastPart(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// A missing file is a checkpoint that is not whole: its folder was listed.
absl::Status NotWhole(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status)
             ? absl::DataLossError(status.message())
             : status;
}

}  // namespace

absl::StatusOr<std::optional<std::vector<std::string>>> CheckpointsIn(
    FileSystem* file_system, const std::string& path) {
  const std::string folder = WithoutLinks(path);
  const absl::StatusOr<std::vector<std::string>> names =
      file_system->List(folder);
  if (!names.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is no folder: ", names.status().message()));
  }
  const auto has = [&names](const char* name) {
    return std::find(names->begin(), names->end(), name) != names->end();
  };
  if (has(kManifestFile) || has(kParametersFile)) return std::nullopt;
  if (ParseCheckpointName(LastPart(folder)).has_value()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::vector<int64_t> newest_first,
                   ListCheckpoints(file_system, folder));
  if (newest_first.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path,
        "' is neither a checkpoint nor a train_dir with checkpoints"));
  }
  std::vector<std::string> paths;
  for (auto step = newest_first.rbegin(); step != newest_first.rend(); ++step) {
    paths.push_back(absl::StrCat(folder, "/", CheckpointName(*step)));
  }
  return paths;
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(
    const VerbCall& call, const std::string& path) {
  WorkProgress progress(call.output);
  auto reader =
      CheckpointReader::Open(call.file_system, WithoutLinks(path), &progress);
  if (!reader.ok()) return NotWhole(reader.status());
  return reader;
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenNewestCheckpoint(
    const VerbCall& call, const std::string& path, std::string* text) {
  ASSIGN_OR_RETURN(const auto paths, CheckpointsIn(call.file_system, path));
  if (!paths.has_value()) return OpenCheckpoint(call, path);
  WorkProgress progress(call.output);
  auto newest = CheckpointReader::OpenNewest(call.file_system,
                                             WithoutLinks(path), &progress);
  if (!newest.ok()) return NotWhole(newest.status());
  for (const std::string& warning : newest->warnings) {
    absl::StrAppend(text, warning, "\n");
  }
  return std::move(newest->reader);
}

std::string SummaryOf(const CheckpointReader& reader) {
  const CheckpointManifest& manifest = reader.manifest();
  int64_t bytes = 0;
  for (const CheckpointFile& file : manifest.files()) bytes += file.bytes();
  int64_t rows = 0;
  for (const SavedTable& table : manifest.tables()) rows += table.rows();
  return absl::StrFormat(
      "step=%d epoch=%d saved=%s trained=%s parameters=%d%s bytes=%d",
      manifest.global_step(), manifest.model_epoch(),
      manifest.saved_unix_ms() == 0
          ? "unknown"
          : absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                             absl::FromUnixMillis(manifest.saved_unix_ms()),
                             absl::UTCTimeZone()),
      absl::FormatDuration(
          absl::Floor(absl::Seconds(manifest.trained_s()), absl::Seconds(1))),
      manifest.parameters_size(),
      manifest.tables().empty()
          ? ""
          : absl::StrCat(" tables=", manifest.tables_size(), " rows=", rows),
      bytes);
}

void VerifyCheckpoints(const VerbCall& call,
                       const std::vector<std::string>& paths,
                       VerbResult* result) {
  for (const std::string& path : paths) {
    const auto reader = OpenCheckpoint(call, path);
    if (!reader.ok()) result->exit_code = kExitBadCheckpoint;
    absl::StrAppend(
        &result->out, LastPart(path),
        reader.ok() ? absl::StrCat("  whole  ", SummaryOf(**reader))
                    : absl::StrCat("  NOT USABLE  ", reader.status().message()),
        "\n");
  }
}

}  // namespace muster
