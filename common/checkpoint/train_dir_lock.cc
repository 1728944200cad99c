#include "common/checkpoint/train_dir_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

absl::Status ErrnoError(absl::string_view action, const std::string& path) {
  const int error = errno;
  return absl::ErrnoToStatus(error, absl::StrCat(action, " '", path, "'"));
}

// Makes the entry of a new folder durable. Best effort: what matters is inside.
void SyncParent(const std::string& folder) {
  const std::string parent = absl::StrCat(folder, "/..");
  const int fd = open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

// mkdir -p.
absl::Status CreateFolders(const std::string& path) {
  for (size_t end = 1; end <= path.size(); ++end) {
    if (end < path.size() && path[end] != '/') continue;
    const std::string folder = path.substr(0, end);
    if (mkdir(folder.c_str(), S_IRWXU) == 0) {
      SyncParent(folder);
      continue;
    }
    struct stat status = {};
    const int error = errno;
    if (stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) continue;
    errno = error;
    return ErrnoError("create folder", folder);
  }
  return absl::OkStatus();
}

// What the holder wrote: its process id, or "" if it did not get so far.
std::string HolderOf(int fd) {
  char text[32] = {};
  const ssize_t size = pread(fd, text, sizeof(text) - 1, 0);
  int64_t process_id = 0;
  if (size <= 0 || !absl::SimpleAtoi(text, &process_id)) return "";
  return absl::StrCat(" (process ", process_id, ")");
}

void WriteHolder(int fd) {
  const std::string text = absl::StrCat(getpid(), "\n");
  // Only for the message of others: the lock is held without it, too.
  if (ftruncate(fd, 0) != 0) return;
  [[maybe_unused]] const ssize_t written =
      pwrite(fd, text.data(), text.size(), 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainDirLock>> TrainDirLock::Acquire(
    const std::string& train_dir) {
  if (train_dir.empty()) {
    return absl::InvalidArgumentError("the train_dir has no name");
  }
  RETURN_IF_ERROR(CreateFolders(train_dir));
  const std::string path = absl::StrCat(train_dir, "/.lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                      S_IRUSR | S_IWUSR);
  if (fd < 0) return ErrnoError("open", path);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const absl::Status status =
        errno == EWOULDBLOCK
            ? absl::FailedPreconditionError(absl::StrCat(
                  "another process", HolderOf(fd), " writes into train_dir '",
                  train_dir, "'; end it or choose another --train_dir"))
            : ErrnoError("lock", path);
    close(fd);
    return status;
  }
  WriteHolder(fd);
  return std::unique_ptr<TrainDirLock>(new TrainDirLock(fd));
}

TrainDirLock::~TrainDirLock() { close(fd_); }

}  // namespace muster
