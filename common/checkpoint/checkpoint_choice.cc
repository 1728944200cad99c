#include "common/checkpoint/checkpoint_choice.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/train_dir.h"

namespace muster {
namespace {

std::string FolderOf(const std::string& train_dir, int64_t global_step) {
  return absl::StrCat(train_dir, "/", CheckpointName(global_step));
}

// "; the nearest are those of steps 1000 and 1400".
absl::StatusOr<std::string> DescribeNearest(FileSystem* file_system,
                                            const std::string& train_dir,
                                            int64_t global_step) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> newest_first,
                   ListCheckpoints(file_system, train_dir));
  std::optional<int64_t> before;
  std::optional<int64_t> after;
  for (const int64_t step : newest_first) {
    if (step > global_step) after = step;
    if (step < global_step && !before.has_value()) before = step;
  }
  if (before.has_value() && after.has_value()) {
    return absl::StrCat("; the nearest are those of steps ", *before, " and ",
                        *after);
  }
  if (!before.has_value() && !after.has_value()) return "; there are no others";
  return absl::StrCat("; the nearest is that of step ",
                      before.has_value() ? *before : *after);
}

absl::StatusOr<CheckpointReader::Newest> OpenStep(FileSystem* file_system,
                                                  const std::string& train_dir,
                                                  int64_t global_step) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                   ListCheckpoints(file_system, train_dir));
  if (!absl::c_linear_search(steps, global_step)) {
    ASSIGN_OR_RETURN(const std::string nearest,
                     DescribeNearest(file_system, train_dir, global_step));
    return absl::NotFoundError(absl::StrCat("there is no checkpoint of step ",
                                            global_step, " in train_dir '",
                                            train_dir, "'", nearest));
  }
  CheckpointReader::Newest opened;
  ASSIGN_OR_RETURN(
      opened.reader,
      CheckpointReader::Open(file_system, FolderOf(train_dir, global_step)));
  return opened;
}

absl::StatusOr<CheckpointReader::Newest> OpenBest(
    FileSystem* file_system, const std::string& train_dir) {
  ASSIGN_OR_RETURN(const std::optional<WatchedFigure> best,
                   FindBestCheckpoint(file_system, train_dir));
  if (!best.has_value()) {
    return absl::NotFoundError(absl::StrCat(
        "no best checkpoint is kept in train_dir '", train_dir,
        "': the training has no checkpoint.keep_best, nothing was evaluated "
        "yet, or the metric was never a finite number"));
  }
  auto opened = OpenStep(file_system, train_dir, best->best_step());
  if (opened.ok()) return opened;
  return Annotate(opened.status(),
                  absl::StrCat("the best one, by ", best->metric()));
}

}  // namespace

absl::StatusOr<CheckpointChoice> ParseCheckpointChoice(absl::string_view text) {
  CheckpointChoice choice;
  if (text == "newest") return choice;
  choice.kind = CheckpointChoice::Kind::kBest;
  if (text == "best") return choice;
  choice.kind = CheckpointChoice::Kind::kStep;
  if (absl::SimpleAtoi(text, &choice.global_step) && choice.global_step >= 0) {
    return choice;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("wanted newest, best or a global step, found '", text, "'"));
}

absl::StatusOr<std::optional<WatchedFigure>> FindBestCheckpoint(
    FileSystem* file_system, const std::string& train_dir) {
  ASSIGN_OR_RETURN(const std::optional<CheckpointManifest> newest,
                   FindNewestManifest(file_system, train_dir));
  if (!newest.has_value() || !newest->evaluations().has_kept()) {
    return std::nullopt;
  }
  return newest->evaluations().kept();
}

absl::StatusOr<CheckpointReader::Newest> OpenChosenCheckpoint(
    FileSystem* file_system, const std::string& train_dir,
    const CheckpointChoice& choice) {
  switch (choice.kind) {
    case CheckpointChoice::Kind::kNewest:
      break;
    case CheckpointChoice::Kind::kBest:
      return OpenBest(file_system, train_dir);
    case CheckpointChoice::Kind::kStep:
      return OpenStep(file_system, train_dir, choice.global_step);
  }
  return CheckpointReader::OpenNewest(file_system, train_dir);
}

}  // namespace muster
