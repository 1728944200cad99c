#ifndef COMMON_CHECKPOINT_FILE_SYSTEM_H_
#define COMMON_CHECKPOINT_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// A file being written. One thread at a time. The destructor closes it.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  virtual absl::Status Append(absl::string_view data) = 0;
  // Writes at a byte of the file, which may be behind its end; bytes that
  // nobody has written are 0. Moves no Append.
  virtual absl::Status WriteAt(int64_t offset, absl::string_view data) = 0;
  // Returns when the bytes are on the disk. After an error the file is lost:
  // the kernel may have dropped the bytes, and a second Sync would lie.
  virtual absl::Status Sync() = 0;
};

// A file being read. Thread-safe. The destructor closes it.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  virtual int64_t size_bytes() const = 0;
  // Reads exactly `length` bytes. Errors: DataLoss if the file ends before.
  virtual absl::Status ReadAt(int64_t offset, int64_t length,
                              char* dst) const = 0;
};

// The few things that checkpoints want of a file system; a seam for tests that
// need a full disk or a power cut (tests/testing/fake_file_system.h).
// Thread-safe. Errors name the path and the system's reason, with the code of
// absl::ErrnoToStatus: ResourceExhausted for a full disk or a limit
// of the process, NotFound, AlreadyExists, PermissionDenied, ...
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Makes a new file, readable by its owner only. Errors: AlreadyExists.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(
      const std::string& path) = 0;
  // Opens a regular file. Neither it nor its folder may be a symbolic link.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(
      const std::string& path) = 0;
  // Makes a folder, for its owner only. Errors: AlreadyExists.
  virtual absl::Status CreateFolder(const std::string& path) = 0;
  // Names in a folder, sorted, without "." and "..".
  virtual absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) = 0;
  // Atomic. `to` may not exist.
  virtual absl::Status Rename(const std::string& from,
                              const std::string& to) = 0;
  // Returns when the folder's entries are on the disk, or at once where the
  // file system has no such call.
  virtual absl::Status SyncFolder(const std::string& path) = 0;
  // Removes a file, or a folder with the files in it (not with folders).
  virtual absl::Status Remove(const std::string& path) = 0;
};

}  // namespace muster

#endif  // COMMON_CHECKPOINT_FILE_SYSTEM_H_
