#ifndef COMMON_CHECKPOINT_POSIX_FILE_SYSTEM_H_
#define COMMON_CHECKPOINT_POSIX_FILE_SYSTEM_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/file_system.h"

namespace muster {

// The machine's. Files are made with mode 0600, folders with 0700; symbolic
// links are not followed from the folder of a file on.
class PosixFileSystem : public FileSystem {
 public:
  // `go_on`, if there is one, is asked before each ReadAt of its files, and
  // outlives them: once it says no, reading fails as stopped (IsStopped).
  explicit PosixFileSystem(std::function<bool()> go_on = nullptr)
      : go_on_(std::move(go_on)) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(
      const std::string& path) override;
  absl::Status CreateFolder(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::Status Remove(const std::string& path) override;

 private:
  const std::function<bool()> go_on_;
};

// The path of what is there behind symbolic links, for a path from the user;
// the path itself if nothing is there.
std::string WithoutLinks(const std::string& path);

}  // namespace muster

#endif  // COMMON_CHECKPOINT_POSIX_FILE_SYSTEM_H_
