#ifndef WORKER_CHECKPOINT_FINISHED_RUN_H_
#define WORKER_CHECKPOINT_FINISHED_RUN_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/reporter.h"
#include "common/checkpoint/file_system.h"
#include "proto/checkpoint.pb.h"
#include "worker/session/job_goal.h"

namespace muster {

// The file in a checkpoint's folder that says that the run ended there.
std::string FinishedRunPath(absl::string_view folder);
std::string FinishedRunText(const FinishedRun& run);

// A task's run, as its options have it.
struct WantedRun {
  std::string train_dir;
  uint64_t training_fingerprint = 0;
  std::string job_namespace;
  JobGoal goal;
};

// The run of the wanted train_dir, if it is finished: it is of this training
// and namespace, has left result.json, has not gone on since, and has reached
// the goal. What cannot be read is not finished.
std::optional<FinishedRun> FindFinishedRun(FileSystem* file_system,
                                           const WantedRun& wanted);

// The condition of those that the chief alone watches that the run reached in
// the checkpoint of this folder, if the goal wants no more; "" if none.
// `reporter` hears of a file that cannot be read.
std::string ReachedByChief(absl::string_view folder, const JobGoal& goal,
                           const Reporter& reporter);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_FINISHED_RUN_H_
