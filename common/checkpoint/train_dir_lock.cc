#include "common/checkpoint/train_dir_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/file_descriptor.h"
#include "common/base/read_file.h"
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
std::string HolderOf(absl::string_view text) {
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t process_id = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words[0], &process_id)) return "";
  return absl::StrCat(" (process ", process_id, " on ",
                      absl::CHexEscape(words[1]), ")");
}

std::string OwnHolder() {
  char host[HOST_NAME_MAX + 1] = {};
  if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') {
    host[0] = '?';
  }
  return absl::StrCat(getpid(), " ", host, "\n");
}

// Only for the message of others: the lock is held without it, too.
void WriteHolder(int fd) {
  if (ftruncate(fd, 0) == 0) WriteAll(fd, OwnHolder());
}

// Is it the error of a file system that has no locks?
bool HasNoLocks(int error) {
  return error == ENOLCK || error == ENOTSUP || error == EOPNOTSUPP ||
         error == ENOSYS || error == EINVAL;
}

// The newest chief's process, host and incarnation.
std::string MarkPath(const std::string& train_dir) {
  return absl::StrCat(train_dir, "/chief");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainDirLock>> TrainDirLock::Acquire(
    const std::string& train_dir, const Options& options) {
  if (train_dir.empty()) {
    return absl::InvalidArgumentError("the train_dir has no name");
  }
  auto lock = absl::WrapUnique(new TrainDirLock(train_dir));
  const absl::Status taken = lock->Take(options);
  if (taken.ok()) return lock;
  // No right to a folder is a wrong folder, and not a matter of security.
  const absl::StatusCode code = absl::IsPermissionDenied(taken)
                                    ? absl::StatusCode::kInvalidArgument
                                    : taken.code();
  return absl::Status(
      code, absl::StrCat("use train_dir '", train_dir, "': ", taken.message(),
                         "; choose another --train_dir"));
}

TrainDirLock::~TrainDirLock() {
  if (fd_ >= 0) close(fd_);
}

absl::Status TrainDirLock::Take(const Options& options) {
  RETURN_IF_ERROR(CreateFolders(train_dir_));
  const std::string path = absl::StrCat(train_dir_, "/.lock");
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
             S_IRUSR | S_IWUSR);
  if (fd_ < 0) return ErrnoError("open", path);
  mark_ = absl::StrCat(absl::StripSuffix(OwnHolder(), "\n"), " ",
                       absl::Hex(options.incarnation), "\n");
  if (options.flock(fd_, LOCK_EX | LOCK_NB) == 0) {
    WriteHolder(fd_);
    return WriteMark();
  }
  const int error = errno;
  if (error == EWOULDBLOCK) {
    return absl::FailedPreconditionError(
        absl::StrCat("another process", HolderOf(ReadFile(path).value_or("")),
                     " writes into it"));
  }
  const absl::Status status = ErrnoError("lock", path);
  if (!HasNoLocks(error)) return status;
  options.reporter.Warning(absl::StrCat(
      status.message(),
      ": this file system has no locks, so another process "
      "that uses this --train_dir is found at a save only; start none"));
  return WriteMark();
}

absl::Status TrainDirLock::WriteMark() const {
  const std::string path = MarkPath(train_dir_);
  const FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
           S_IRUSR | S_IWUSR));
  if (!file.valid()) return ErrnoError("open", path);
  return WriteAll(file.get(), mark_) ? absl::OkStatus()
                                     : ErrnoError("write", path);
}

absl::Status TrainDirLock::CheckHeld() const {
  const absl::StatusOr<std::string> mark = ReadFile(MarkPath(train_dir_));
  // Whoever takes the folder writes it, and removes nothing.
  if (absl::IsNotFound(mark.status())) return WriteMark();
  RETURN_IF_ERROR(mark.status());
  if (*mark == mark_) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("save into train_dir '", train_dir_, "': another process",
                   HolderOf(*mark),
                   " writes into it now; nothing more is saved there. End that "
                   "one, or choose another --train_dir"));
}

}  // namespace muster
