#include "common/checkpoint/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file_descriptor.h"
#include "common/base/status_macros.h"
#include "common/base/stopped_error.h"

namespace muster {
namespace {

absl::Status ErrnoError(absl::string_view action, const std::string& path) {
  const int error = errno;
  const absl::Status status =
      absl::ErrnoToStatus(error, absl::StrCat(action, " '", path, "'"));
  if (error != EFBIG) return status;
  // A limit of this process's files (ulimit -f) is a disk that is full.
  return absl::ResourceExhaustedError(status.message());
}

// Repeats a call that a signal interrupted.
template <typename Call>
auto Retried(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// Opens a file in its folder, following no link at either.
absl::StatusOr<FileDescriptor> OpenAt(absl::string_view action,
                                      const std::string& path, int flags) {
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, slash + (slash == 0));
  const std::string name =
      slash == std::string::npos ? path : path.substr(slash + 1);
  const FileDescriptor parent(Retried([&] {
    return open(folder.c_str(),
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }));
  if (!parent.valid()) return ErrnoError(action, path);
  FileDescriptor file(Retried([&] {
    return openat(parent.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC,
                  S_IRUSR | S_IWUSR);
  }));
  if (!file.valid()) return ErrnoError(action, path);
  return file;
}

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(FileDescriptor fd, std::string path)
      : fd_(std::move(fd)), path_(std::move(path)) {}

  absl::Status Append(absl::string_view data) override {
    if (!WriteAll(fd_.get(), data)) return ErrnoError("write", path_);
    return absl::OkStatus();
  }

  absl::Status WriteAt(int64_t offset, absl::string_view data) override {
    while (!data.empty()) {
      const ssize_t count = Retried(
          [&] { return pwrite(fd_.get(), data.data(), data.size(), offset); });
      if (count < 0) return ErrnoError("write", path_);
      data.remove_prefix(static_cast<size_t>(count));
      offset += count;
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    // Not retried, not even after EINTR: see FileSystem.
    if (fsync(fd_.get()) != 0) return ErrnoError("fsync", path_);
    return absl::OkStatus();
  }

 private:
  const FileDescriptor fd_;
  const std::string path_;
};

class PosixReadableFile : public ReadableFile {
 public:
  PosixReadableFile(FileDescriptor fd, std::string path, int64_t size_bytes,
                    std::function<bool()> go_on)
      : fd_(std::move(fd)),
        path_(std::move(path)),
        size_bytes_(size_bytes),
        go_on_(std::move(go_on)) {}

  int64_t size_bytes() const override { return size_bytes_; }

  absl::Status ReadAt(int64_t offset, int64_t length,
                      char* dst) const override {
    if (go_on_ != nullptr && !go_on_()) {
      return StoppedError(absl::StrCat("read '", path_, "'"));
    }
    while (length > 0) {
      const ssize_t count = Retried([&] {
        return pread(fd_.get(), dst, static_cast<size_t>(length), offset);
      });
      if (count < 0) return ErrnoError("read", path_);
      if (count == 0) {
        return absl::DataLossError(absl::StrCat(
            "read '", path_, "': the file ends at byte ", offset, ", ", length,
            " bytes before the end of what was to be read"));
      }
      offset += count;
      length -= count;
      dst += count;
    }
    return absl::OkStatus();
  }

 private:
  const FileDescriptor fd_;
  const std::string path_;
  const int64_t size_bytes_;
  const std::function<bool()> go_on_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WritableFile>> PosixFileSystem::CreateFile(
    const std::string& path) {
  ASSIGN_OR_RETURN(FileDescriptor fd,
                   OpenAt("create", path, O_WRONLY | O_CREAT | O_EXCL));
  return std::make_unique<PosixWritableFile>(std::move(fd), path);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> PosixFileSystem::OpenFile(
    const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not hang.
  ASSIGN_OR_RETURN(FileDescriptor fd,
                   OpenAt("open", path, O_RDONLY | O_NONBLOCK));
  struct stat status = {};
  if (fstat(fd.get(), &status) != 0) return ErrnoError("stat", path);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("open '", path, "': not a regular file"));
  }
  return std::make_unique<PosixReadableFile>(std::move(fd), path,
                                             status.st_size, go_on_);
}

absl::Status PosixFileSystem::CreateFolder(const std::string& path) {
  if (mkdir(path.c_str(), S_IRWXU) != 0) {
    return ErrnoError("create folder", path);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> PosixFileSystem::List(
    const std::string& path) {
  struct CloseDir {
    void operator()(DIR* dir) const { closedir(dir); }
  };
  const std::unique_ptr<DIR, CloseDir> dir(opendir(path.c_str()));
  if (dir == nullptr) return ErrnoError("list", path);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  if (errno != 0) return ErrnoError("list", path);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status PosixFileSystem::Rename(const std::string& from,
                                     const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoError(absl::StrCat("rename '", from, "' to"), to);
  }
  return absl::OkStatus();
}

absl::Status PosixFileSystem::SyncFolder(const std::string& path) {
  const FileDescriptor fd(Retried(
      [&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!fd.valid()) return ErrnoError("open folder", path);
  // Some file systems have no fsync of folders: what others lose without it
  // lies in their own hands. An error of the disk is never passed over.
  const bool is_synced = fsync(fd.get()) == 0 || errno == EINVAL ||
                         errno == ENOTSUP || errno == EOPNOTSUPP;
  return is_synced ? absl::OkStatus() : ErrnoError("fsync folder", path);
}

absl::Status PosixFileSystem::Remove(const std::string& path) {
  if (unlink(path.c_str()) == 0) return absl::OkStatus();
  if (errno != EISDIR && errno != EPERM) return ErrnoError("remove", path);
  ASSIGN_OR_RETURN(const std::vector<std::string> names, List(path));
  for (const std::string& name : names) {
    const std::string file = absl::StrCat(path, "/", name);
    if (unlink(file.c_str()) != 0) return ErrnoError("remove", file);
  }
  if (rmdir(path.c_str()) != 0) return ErrnoError("remove folder", path);
  return absl::OkStatus();
}

std::string WithoutLinks(const std::string& path) {
  std::error_code error;
  const std::filesystem::path found = std::filesystem::canonical(path, error);
  return error ? path : found.string();
}

}  // namespace muster
