#ifndef TESTS_TESTING_FAKE_FILE_SYSTEM_H_
#define TESTS_TESTING_FAKE_FILE_SYSTEM_H_

#include <cstdint>
#include <functional>
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
// A power cut leaves a file at least the bytes of its last Sync, a folder
// at least the entries of its last SyncFolder; a renamed folder keeps its
// contents. Of what came after, CutPower() leaves nothing, and CutPower(seed)
// what a disk may have got to: of each file some of the later bytes, some pages
// of them zero, and of each folder the first few of the later changes.
class FakeFileSystem : public FileSystem {
 public:
  // `root` is there, and durable.
  explicit FakeFileSystem(std::string root);

  // The calls so far that change something: create, append, write at, sync,
  // create folder, rename, sync folder, remove.
  int calls() const;
  // Makes the `call`-th changing call from now on (1 is the next) fail with
  // `error`, once.
  void FailAt(int call, absl::Status error);
  // The same, and everything after it fails as well, as after a kill.
  void FailFrom(int call, absl::Status error);
  // Drops what was not synced, and ends all failures.
  void CutPower();
  // Drops a part of it that the seed chooses.
  void CutPower(uint64_t seed);
  // Ends failures; nothing is dropped, as after a kill -9 of the process.
  void Restart();

  // The changing calls so far: "fsync train/ckpt/file".
  std::vector<std::string> log() const;

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
    std::string path;  // when it was made
    std::string now;
    std::string durable;
  };
  using FilePtr = std::shared_ptr<File>;  // an open file outlives its name
  // Entries of a folder, now and on the disk, and all that they were between
  // the two, in order.
  template <typename Entry>
  struct Entries {
    std::map<std::string, Entry> now;
    std::map<std::string, Entry> durable;
    std::vector<std::map<std::string, Entry>> unsynced;

    void Changed() { unsynced.push_back(now); }
    void Sync() {
      durable = now;
      unsynced.clear();
    }
    // Forgets all but the first `changes` of the unsynced ones.
    void CutTo(size_t changes) {
      if (changes > 0) durable = unsynced[changes - 1];
      now = durable;
      unsynced.clear();
    }
  };
  using Folder = Entries<FilePtr>;
  using FolderPtr = std::shared_ptr<Folder>;  // in `now` and in `durable`
  class Writable;
  class Readable;

  // `choose(n)` is how many of n unsynced changes or bytes survive.
  void CutPower(const std::function<size_t(size_t)>& choose);
  absl::Status NextCall(const std::string& what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Within its folder.
  absl::Status RenameFile(const std::string& from, const std::string& to)
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
  std::vector<std::string> log_ ABSL_GUARDED_BY(mu_);
  // The folders, by name below the root.
  Entries<FolderPtr> folders_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_TESTING_FAKE_FILE_SYSTEM_H_
