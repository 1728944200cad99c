#ifndef COMMON_CHECKPOINT_CHECKPOINT_CHOICE_H_
#define COMMON_CHECKPOINT_CHECKPOINT_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/file_system.h"
#include "proto/evaluation_history.pb.h"

namespace muster {

// Which checkpoint of a train_dir is wanted.
struct CheckpointChoice {
  enum class Kind { kNewest, kBest, kStep };
  Kind kind = Kind::kNewest;
  // Of kStep.
  int64_t global_step = 0;
};

// "newest", "best" or a global step. Errors: InvalidArgument.
absl::StatusOr<CheckpointChoice> ParseCheckpointChoice(absl::string_view text);

// The figure of the best checkpoint, whose step is best_step, as the newest
// manifest names it. Nullopt if it names none. Errors: FindNewestManifest's.
absl::StatusOr<std::optional<WatchedFigure>> FindBestCheckpoint(
    FileSystem* file_system, const std::string& train_dir);

// Opens it as CheckpointReader::Open does, and never another one: warnings are
// kNewest's only. Errors: CheckpointReader's; NotFound, with the nearest steps,
// if there is none of that step, or if the run has kept no best one.
absl::StatusOr<CheckpointReader::Newest> OpenChosenCheckpoint(
    FileSystem* file_system, const std::string& train_dir,
    const CheckpointChoice& choice);

}  // namespace muster

#endif  // COMMON_CHECKPOINT_CHECKPOINT_CHOICE_H_
