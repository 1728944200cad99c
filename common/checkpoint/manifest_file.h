#ifndef COMMON_CHECKPOINT_MANIFEST_FILE_H_
#define COMMON_CHECKPOINT_MANIFEST_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/checkpoint/file_system.h"
#include "proto/checkpoint.pb.h"

namespace muster {

// The checked manifest of a checkpoint folder; nothing else in it is read.
// Errors, with the file's path: those of ParseManifest and of the file system.
absl::StatusOr<CheckpointManifest> ReadManifestFile(FileSystem* file_system,
                                                    const std::string& folder);

}  // namespace muster

#endif  // COMMON_CHECKPOINT_MANIFEST_FILE_H_
