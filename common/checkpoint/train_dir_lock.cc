#include "common/checkpoint/train_dir_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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
    const bool exists = stat(folder.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) continue;
    if (exists) {
      return absl::AlreadyExistsError(
          absl::StrCat("'", folder, "' is a file, wanted a folder"));
    }
    errno = error;
    return ErrnoError("create folder", folder);
  }
  return absl::OkStatus();
}

// The line that the holder wrote, its process id and host, or "" if it did not
// get so far.
std::string HolderOf(int fd) {
  char text[HOST_NAME_MAX + 32] = {};
  const ssize_t size = pread(fd, text, sizeof(text) - 1, 0);
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t process_id = 0;
  if (size <= 0 || words.size() != 2 ||
      !absl::SimpleAtoi(words[0], &process_id)) {
    return "";
  }
  return absl::StrCat(" (process ", process_id, " on ",
                      absl::CHexEscape(words[1]), ")");
}

void WriteHolder(int fd) {
  char host[HOST_NAME_MAX + 1] = {};
  if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') {
    host[0] = '?';
  }
  const std::string text = absl::StrCat(getpid(), " ", host, "\n");
  // Only for the message of others: the lock is held without it, too.
  if (ftruncate(fd, 0) != 0) return;
  [[maybe_unused]] const ssize_t written =
      pwrite(fd, text.data(), text.size(), 0);
}

// The locked file of the folder, which is made if it is not there.
absl::StatusOr<int> OpenLocked(const std::string& train_dir) {
  RETURN_IF_ERROR(CreateFolders(train_dir));
  const std::string path = absl::StrCat(train_dir, "/.lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                      S_IRUSR | S_IWUSR);
  if (fd < 0) return ErrnoError("open", path);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const absl::Status status =
        errno == EWOULDBLOCK
            ? absl::FailedPreconditionError(absl::StrCat(
                  "another process", HolderOf(fd), " writes into it"))
            : ErrnoError("lock", path);
    close(fd);
    return status;
  }
  WriteHolder(fd);
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainDirLock>> TrainDirLock::Acquire(
    const std::string& train_dir) {
  if (train_dir.empty()) {
    return absl::InvalidArgumentError("the train_dir has no name");
  }
  const absl::StatusOr<int> fd = OpenLocked(train_dir);
  if (fd.ok()) return std::unique_ptr<TrainDirLock>(new TrainDirLock(*fd));
  // No right to a folder is a wrong folder, and not a matter of security.
  const absl::StatusCode code = absl::IsPermissionDenied(fd.status())
                                    ? absl::StatusCode::kInvalidArgument
                                    : fd.status().code();
  return absl::Status(code, absl::StrCat("use train_dir '", train_dir,
                                         "': ", fd.status().message(),
                                         "; choose another --train_dir"));
}

TrainDirLock::~TrainDirLock() { close(fd_); }

}  // namespace muster
