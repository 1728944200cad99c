#ifndef COMMON_CHECKPOINT_TRAIN_DIR_H_
#define COMMON_CHECKPOINT_TRAIN_DIR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/file_system.h"

namespace muster {

// The names in a train_dir that belong to checkpoints; see README.md.

// "ckpt-000000000100".
std::string CheckpointName(int64_t global_step);
// The name while a checkpoint is being written; no reader looks at it.
std::string TemporaryName(int64_t global_step);
// The name of one that is being replaced by another of the same step.
std::string ReplacedName(int64_t global_step);

// The step of exactly such a name, else nothing.
std::optional<int64_t> ParseCheckpointName(absl::string_view name);

// The steps of the checkpoint folders, whole or not, the newest first.
absl::StatusOr<std::vector<int64_t>> ListCheckpoints(
    FileSystem* file_system, const std::string& train_dir);

// Removes what a writer left that died: temporary folders, and replaced ones,
// of which the replacement is there (else they are put back). REQUIRES: the
// caller holds the TrainDirLock.
absl::Status CleanTrainDir(FileSystem* file_system,
                           const std::string& train_dir);

// Does with a few bytes what each save does, and removes them again, so that a
// disk or file system that cannot take a checkpoint is known before the
// training. REQUIRES: the caller holds the TrainDirLock. Errors: the file
// system's, with what to do.
absl::Status ProbeTrainDir(FileSystem* file_system,
                           const std::string& train_dir);

}  // namespace muster

#endif  // COMMON_CHECKPOINT_TRAIN_DIR_H_
