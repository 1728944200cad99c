#ifndef WORKER_CTL_INSPECT_CHECKPOINT_H_
#define WORKER_CTL_INSPECT_CHECKPOINT_H_

#include <string>

#include "common/checkpoint/file_system.h"

namespace muster {

// What is to be done with the checkpoints of a folder that no chief needs to
// be running for. Nothing in it is changed, and no lock is taken.
struct InspectOptions {
  // A train_dir or one ckpt-<step> folder.
  std::string path;
  // "", or another such folder to compare with.
  std::string diff_with;
  // "", or a new safetensors file for the parameters.
  std::string export_to;
};

struct Inspection {
  // For stdout; ends with a line end.
  std::string text;
  // For stderr; "" if there is none.
  std::string error;
  // kExitDone; kExitFailed if the two differ; kExitBadCheckpoint if one that
  // was looked at is not whole; kExitBadConfig if a path is no folder of
  // checkpoints, or the file to be written is there or cannot be.
  int exit_code = 0;
};

// Every CRC of what is looked at is checked.
//   path alone:  a train_dir: its checkpoints, whole or why not;
//                one checkpoint: its manifest and tensors
//   diff_with:   which tensors differ, where and how far
//   export_to:   the parameters as one safetensors file
// With the last two a train_dir stands for its newest whole checkpoint.
Inspection InspectCheckpoint(FileSystem* file_system,
                             const InspectOptions& options);

}  // namespace muster

#endif  // WORKER_CTL_INSPECT_CHECKPOINT_H_
