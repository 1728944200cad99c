#ifndef COMMON_CHECKPOINT_TRAIN_DIR_LOCK_H_
#define COMMON_CHECKPOINT_TRAIN_DIR_LOCK_H_

#include <sys/file.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/reporter.h"

namespace muster {

// The right to write into a train_dir. One process of this machine holds it;
// the kernel gives it back when the process ends, however it ends. (The lock
// is flock on train_dir/.lock; over NFS it holds between machines, too, where
// the server supports it. The chief lease at ps 0 is the cluster's guard.)
//
// Where the file system has no flock, or one that other machines do not see
// (some mounts of NFS, Lustre and FUSE), whoever comes last has the right: its
// incarnation stands in train_dir/chief, which the others find at their next
// CheckHeld.
class TrainDirLock {
 public:
  struct Options {
    // The process's; 0 is nobody's.
    uint64_t incarnation = 0;
    // Hears if there are no locks.
    Reporter reporter;
    // A test's has other errors.
    int (*flock)(int fd, int operation) = &::flock;
  };

  // Makes `train_dir` (mode 0700, with missing parents) if it is not there,
  // and takes the lock without waiting. Errors: FailedPrecondition naming the
  // holder's process id and host if it is taken; AlreadyExists if a file is
  // where a folder should be; InvalidArgument if it may not be written; the
  // system's otherwise.
  static absl::StatusOr<std::unique_ptr<TrainDirLock>> Acquire(
      const std::string& train_dir, const Options& options);

  TrainDirLock(const TrainDirLock&) = delete;
  TrainDirLock& operator=(const TrainDirLock&) = delete;
  ~TrainDirLock();

  // To be asked before each save. Errors: AlreadyExists if another process has
  // the right now; the system's.
  absl::Status CheckHeld() const;

 private:
  explicit TrainDirLock(std::string train_dir)
      : train_dir_(std::move(train_dir)) {}

  // Takes the lock, or else the right of whoever comes last.
  absl::Status Take(const Options& options);
  absl::Status WriteMark() const;

  const std::string train_dir_;
  int fd_ = -1;
  // The text of train_dir/chief.
  std::string mark_;
};

}  // namespace muster

#endif  // COMMON_CHECKPOINT_TRAIN_DIR_LOCK_H_
