#include "common/checkpoint/train_dir.h"

#include <algorithm>
#include <functional>

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

}  // namespace muster
