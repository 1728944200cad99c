#ifndef COMMON_CHECKPOINT_MANIFEST_FILE_H_
#define COMMON_CHECKPOINT_MANIFEST_FILE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/file_system.h"
#include "proto/checkpoint.pb.h"

namespace muster {

// The checked manifest of a checkpoint folder; nothing else in it is read.
// Errors, with the file's path: those of ParseManifest and of the file system.
absl::StatusOr<CheckpointManifest> ReadManifestFile(FileSystem* file_system,
                                                    const std::string& folder);

// The newest manifest of a train_dir that can be read: that of the largest
// model epoch, and in it of the largest step, for a restore may have passed
// over larger ones. Nullopt if there is none. Errors: FailedPrecondition for a
// newer format; the file system's.
absl::StatusOr<std::optional<CheckpointManifest>> FindNewestManifest(
    FileSystem* file_system, const std::string& train_dir);

}  // namespace muster

#endif  // COMMON_CHECKPOINT_MANIFEST_FILE_H_
