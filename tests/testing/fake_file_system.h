#ifndef TESTS_TESTING_FAKE_FILE_SYSTEM_H_
#define TESTS_TESTING_FAKE_FILE_SYSTEM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/checkpoint/file_system.h"

namespace muster {

// A file system in memory that fails at the call of one's choice, and that
// forgets what was not synced when the power goes. Folders are one level deep
// below a folder that is there from the start. Thread-safe.
//
// After a power cut a file has the bytes of its last Sync, and a folder the
// entries of its last SyncFolder; a renamed folder keeps its contents.
class FakeFileSystem : public FileSystem {
 public:
  // `root` is there, and durable.
  explicit FakeFileSystem(std::string root);

  // The calls so far that change something: create, append, sync, create
  // folder, rename, sync folder, remove.
  int calls() const;
  // Makes the `call`-th changing call from now on (1 is the next) fail with
  // `error`, once.
  void FailAt(int call, absl::Status error);
  // The same, and everything after it fails as well, as after a kill.
  void FailFrom(int call, absl::Status error);
  // Drops what was not synced, and ends all failures.
  void CutPower();
  // Ends failures; nothing is dropped, as after a kill -9 of the process.
  void Restart();

  // The bytes of a file; it must be there.
  std::string Contents(const std::string& path) const;
  // Replaces them (bit rot).
  void SetContents(const std::string& path, std::string contents);

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
  // A file's bytes, now and on the disk.
  struct File {
    std::string now;
    std::string durable;
  };
  using FilePtr = std::shared_ptr<File>;  // an open file outlives its name
  // A folder's entries, now and on the disk.
  struct Folder {
    std::map<std::string, FilePtr> now;
    std::map<std::string, FilePtr> durable;
  };
  using FolderPtr = std::shared_ptr<Folder>;  // in `now` and in `durable`
  class Writable;
  class Readable;

  absl::Status NextCall(const std::string& what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Folder* FindFolder(const std::string& path) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  FilePtr FindFile(const std::string& path) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string root_;
  mutable absl::Mutex mu_;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  int fail_at_ ABSL_GUARDED_BY(mu_) = 0;
  bool fail_on_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  // By name below the root.
  std::map<std::string, FolderPtr> now_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, FolderPtr> durable_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_TESTING_FAKE_FILE_SYSTEM_H_
