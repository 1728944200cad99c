#ifndef COMMON_CHECKPOINT_TRAIN_DIR_LOCK_H_
#define COMMON_CHECKPOINT_TRAIN_DIR_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// The right to write into a train_dir. One process of this machine holds it;
// the kernel gives it back when the process ends, however it ends. (The lock
// is flock on train_dir/.lock; over NFS it holds between machines, too, where
// the server supports it. The chief lease at ps 0 is the cluster's guard.)
class TrainDirLock {
 public:
  // Makes `train_dir` (mode 0700, with missing parents) if it is not there,
  // and takes the lock without waiting. Errors: FailedPrecondition naming the
  // holder's process id and host if it is taken; AlreadyExists if a file is
  // where a folder should be; InvalidArgument if it may not be written; the
  // system's otherwise.
  static absl::StatusOr<std::unique_ptr<TrainDirLock>> Acquire(
      const std::string& train_dir);

  TrainDirLock(const TrainDirLock&) = delete;
  TrainDirLock& operator=(const TrainDirLock&) = delete;
  ~TrainDirLock();

 private:
  explicit TrainDirLock(int fd) : fd_(fd) {}

  const int fd_;
};

}  // namespace muster

#endif  // COMMON_CHECKPOINT_TRAIN_DIR_LOCK_H_
