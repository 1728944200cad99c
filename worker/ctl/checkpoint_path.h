// The paths that the checkpoint verbs take: a train_dir, or one ckpt-<step>
// folder. Nothing there is changed, no lock is taken, and no chief needs to be
// running.
#ifndef WORKER_CTL_CHECKPOINT_PATH_H_
#define WORKER_CTL_CHECKPOINT_PATH_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/file_system.h"
#include "worker/ctl/verb.h"

namespace muster {

// Every checkpoint of a train_dir, oldest first; nothing if `path` is one
// checkpoint. Errors: InvalidArgument if it is neither.
absl::StatusOr<std::optional<std::vector<std::string>>> CheckpointsIn(
    FileSystem* file_system, const std::string& path);

// Opens one checkpoint, and checks every CRC. Errors: DataLoss if it is not
// whole.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(
    const VerbCall& call, const std::string& path);

// The checkpoint at `path`, or the newest whole one of a train_dir; those that
// are newer and not whole are said in `text`, a line each. Errors: as above.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenNewestCheckpoint(
    const VerbCall& call, const std::string& path, std::string* text);

// "step=100 epoch=2 saved=2026-11-21T09:00:00Z trained=12s ...".
std::string SummaryOf(const CheckpointReader& reader);

// Appends a line for each of `paths`: whole with its summary, or why not; in
// this case the exit code is kExitBadCheckpoint.
void VerifyCheckpoints(const VerbCall& call,
                       const std::vector<std::string>& paths,
                       VerbResult* result);

}  // namespace muster

#endif  // WORKER_CTL_CHECKPOINT_PATH_H_
