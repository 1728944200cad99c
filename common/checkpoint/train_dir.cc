#include "common/checkpoint/train_dir.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr absl::string_view kTemporaryPrefix = ".tmp-";
constexpr absl::string_view kReplacedPrefix = ".old-";
// No run gets so far. What a probe leaves that dies is removed as a writer's.
constexpr int64_t kProbeStep = 999'999'999'998;

absl::Status WriteAndRead(FileSystem* file_system, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                   file_system->CreateFile(path));
  RETURN_IF_ERROR(file->Append("x"));
  RETURN_IF_ERROR(file->Sync());
  file.reset();
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> written,
                   file_system->OpenFile(path));
  char byte = 0;
  return written->ReadAt(0, 1, &byte);
}

absl::Status TrySave(FileSystem* file_system, const std::string& train_dir,
                     const std::string& made, const std::string& renamed) {
  RETURN_IF_ERROR(file_system->CreateFolder(made));
  RETURN_IF_ERROR(WriteAndRead(file_system, made + "/probe"));
  RETURN_IF_ERROR(file_system->SyncFolder(made));
  RETURN_IF_ERROR(file_system->Rename(made, renamed));
  RETURN_IF_ERROR(file_system->SyncFolder(train_dir));
  return file_system->Remove(renamed);
}

}  // namespace

std::string CheckpointName(int64_t global_step) {
  return absl::StrFormat("ckpt-%012d", global_step);
}

std::string TemporaryName(int64_t global_step) {
  return absl::StrCat(kTemporaryPrefix, CheckpointName(global_step));
}

std::string ReplacedName(int64_t global_step) {
  return absl::StrCat(kReplacedPrefix, CheckpointName(global_step));
}

std::optional<int64_t> ParseCheckpointName(absl::string_view name) {
  absl::string_view digits = name;
  int64_t global_step = 0;
  if (!absl::ConsumePrefix(&digits, "ckpt-") ||
      !absl::SimpleAtoi(digits, &global_step) || global_step < 0 ||
      CheckpointName(global_step) != name) {
    return std::nullopt;
  }
  return global_step;
}

absl::StatusOr<std::vector<int64_t>> ListCheckpoints(
    FileSystem* file_system, const std::string& train_dir) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   file_system->List(train_dir));
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    const std::optional<int64_t> step = ParseCheckpointName(name);
    if (step.has_value()) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

absl::Status CleanTrainDir(FileSystem* file_system,
                           const std::string& train_dir) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   file_system->List(train_dir));
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(train_dir, "/", name);
    absl::string_view checkpoint = name;
    if (absl::ConsumePrefix(&checkpoint, kTemporaryPrefix)) {
      if (!ParseCheckpointName(checkpoint).has_value()) continue;
      RETURN_IF_ERROR(file_system->Remove(path));
    } else if (absl::ConsumePrefix(&checkpoint, kReplacedPrefix)) {
      if (!ParseCheckpointName(checkpoint).has_value()) continue;
      RETURN_IF_ERROR(
          absl::c_linear_search(names, checkpoint)
              ? file_system->Remove(path)
              : file_system->Rename(path,
                                    absl::StrCat(train_dir, "/", checkpoint)));
    }
  }
  return absl::OkStatus();
}

absl::Status ProbeTrainDir(FileSystem* file_system,
                           const std::string& train_dir) {
  const std::string made =
      absl::StrCat(train_dir, "/", TemporaryName(kProbeStep));
  const std::string renamed =
      absl::StrCat(train_dir, "/", TemporaryName(kProbeStep + 1));
  const absl::Status status = TrySave(file_system, train_dir, made, renamed);
  if (status.ok()) return status;
  file_system->Remove(made).IgnoreError();
  file_system->Remove(renamed).IgnoreError();
  return absl::Status(
      status.code(),
      absl::StrCat("use train_dir '", train_dir,
                   "': no checkpoint can be saved there: ", status.message(),
                   absl::IsResourceExhausted(status) ? "; make room, or" : ";",
                   " choose a --train_dir on another file system"));
}

}  // namespace muster
