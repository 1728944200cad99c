#include "tests/testing/fake_file_system.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kPageBytes = 4096;

// "train/ckpt/file" is {"train/ckpt", "file"}.
std::pair<std::string, std::string> Split(const std::string& path) {
  const size_t slash = path.rfind('/');
  return {path.substr(0, slash), path.substr(slash + 1)};
}

absl::Status NotThere(const std::string& path) {
  return absl::NotFoundError(absl::StrCat("'", path, "' is not there"));
}

}  // namespace

class FakeFileSystem::Writable : public WritableFile {
 public:
  Writable(FakeFileSystem* fs, FilePtr file)
      : fs_(fs), file_(std::move(file)) {}

  absl::Status Append(absl::string_view data) override {
    absl::MutexLock lock(&fs_->mu_);
    RETURN_IF_ERROR(fs_->NextCall("append " + file_->path));
    file_->now.append(data.data(), data.size());
    return absl::OkStatus();
  }
  absl::Status WriteAt(int64_t offset, absl::string_view data) override {
    absl::MutexLock lock(&fs_->mu_);
    RETURN_IF_ERROR(fs_->NextCall("write " + file_->path));
    const auto begin = static_cast<size_t>(offset);
    std::string& now = file_->now;
    now.resize(std::max(now.size(), begin + data.size()), '\0');
    now.replace(begin, data.size(), data.data(), data.size());
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    absl::MutexLock lock(&fs_->mu_);
    RETURN_IF_ERROR(fs_->NextCall("fsync " + file_->path));
    file_->durable = file_->now;
    return absl::OkStatus();
  }

 private:
  FakeFileSystem* const fs_;
  const FilePtr file_;
};

class FakeFileSystem::Readable : public ReadableFile {
 public:
  explicit Readable(std::string contents) : contents_(std::move(contents)) {}

  int64_t size_bytes() const override {
    return static_cast<int64_t>(contents_.size());
  }
  absl::Status ReadAt(int64_t offset, int64_t length,
                      char* dst) const override {
    if (offset + length > size_bytes()) return absl::DataLossError("the end");
    contents_.copy(dst, static_cast<size_t>(length),
                   static_cast<size_t>(offset));
    return absl::OkStatus();
  }

 private:
  const std::string contents_;
};

FakeFileSystem::FakeFileSystem(std::string root) : root_(std::move(root)) {}

int FakeFileSystem::calls() const {
  absl::MutexLock lock(&mu_);
  return calls_;
}

void FakeFileSystem::FailAt(int call, absl::Status error) {
  absl::MutexLock lock(&mu_);
  fail_at_ = calls_ + call;
  fail_on_ = false;
  error_ = std::move(error);
}

void FakeFileSystem::FailFrom(int call, absl::Status error) {
  FailAt(call, std::move(error));
  absl::MutexLock lock(&mu_);
  fail_on_ = true;
}

void FakeFileSystem::Restart() {
  absl::MutexLock lock(&mu_);
  fail_at_ = 0;
}

void FakeFileSystem::CutPower() {
  CutPower([](size_t) { return size_t{0}; });
}

void FakeFileSystem::CutPower(uint64_t seed) {
  std::mt19937_64 random(seed);
  CutPower([&random](size_t unsynced) {
    return static_cast<size_t>(random() % (unsynced + 1));
  });
}

void FakeFileSystem::CutPower(const std::function<size_t(size_t)>& choose) {
  Restart();
  absl::MutexLock lock(&mu_);
  folders_.CutTo(choose(folders_.unsynced.size()));
  for (auto& [name, folder] : folders_.now) {
    folder->CutTo(choose(folder->unsynced.size()));
    for (auto& [file_name, file] : folder->now) {
      const size_t synced = file->durable.size();
      file->durable =
          file->now.substr(0, synced + choose(file->now.size() - synced));
      // The length is on the disk, but not every page.
      for (size_t i = synced; i < file->durable.size(); i += kPageBytes) {
        const size_t size = std::min(kPageBytes, file->durable.size() - i);
        if (choose(1) == 0) file->durable.replace(i, size, size, '\0');
      }
      file->now = file->durable;
    }
  }
}

std::vector<std::string> FakeFileSystem::log() const {
  absl::MutexLock lock(&mu_);
  return log_;
}

absl::Status FakeFileSystem::NextCall(const std::string& what) {
  ++calls_;
  log_.push_back(what);
  const bool fails =
      fail_at_ != 0 && (fail_on_ ? calls_ >= fail_at_ : calls_ == fail_at_);
  return fails ? Annotate(error_, what) : absl::OkStatus();
}

FakeFileSystem::Folder* FakeFileSystem::FindFolder(
    const std::string& path) const {
  const auto [parent, name] = Split(path);
  const auto it = folders_.now.find(name);
  return parent == root_ && it != folders_.now.end() ? it->second.get()
                                                     : nullptr;
}

FakeFileSystem::FilePtr FakeFileSystem::FindFile(
    const std::string& path) const {
  const auto [parent, name] = Split(path);
  Folder* const folder = FindFolder(parent);
  if (folder == nullptr) return nullptr;
  const auto it = folder->now.find(name);
  return it == folder->now.end() ? nullptr : it->second;
}

std::string FakeFileSystem::Contents(const std::string& path) const {
  absl::MutexLock lock(&mu_);
  const FilePtr file = FindFile(path);
  return file == nullptr ? "" : file->now;
}

void FakeFileSystem::SetContents(const std::string& path,
                                 std::string contents) {
  absl::MutexLock lock(&mu_);
  const auto [parent, name] = Split(path);
  Folder* const folder = FindFolder(parent);
  if (folder == nullptr) return;
  FilePtr& file = folder->now[name];
  file = std::make_shared<File>();
  file->path = path;
  file->now = file->durable = std::move(contents);
  folder->Sync();
}

absl::StatusOr<std::unique_ptr<WritableFile>> FakeFileSystem::CreateFile(
    const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(NextCall("create " + path));
  const auto [parent, name] = Split(path);
  Folder* const folder = FindFolder(parent);
  if (folder == nullptr) return NotThere(parent);
  if (folder->now.count(name) > 0) return absl::AlreadyExistsError(path);
  const FilePtr file = std::make_shared<File>();
  file->path = path;
  folder->now[name] = file;
  folder->Changed();
  return std::make_unique<Writable>(this, file);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> FakeFileSystem::OpenFile(
    const std::string& path) {
  absl::MutexLock lock(&mu_);
  const FilePtr file = FindFile(path);
  if (file == nullptr) return NotThere(path);
  return std::make_unique<Readable>(file->now);
}

absl::Status FakeFileSystem::CreateFolder(const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(NextCall("create folder " + path));
  const auto [parent, name] = Split(path);
  if (parent != root_) return NotThere(parent);
  if (!folders_.now.emplace(name, std::make_shared<Folder>()).second) {
    return absl::AlreadyExistsError(path);
  }
  folders_.Changed();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FakeFileSystem::List(
    const std::string& path) {
  absl::MutexLock lock(&mu_);
  std::vector<std::string> names;
  if (path == root_) {
    for (const auto& [name, folder] : folders_.now) names.push_back(name);
    return names;
  }
  Folder* const folder = FindFolder(path);
  if (folder == nullptr) return NotThere(path);
  for (const auto& [name, file] : folder->now) names.push_back(name);
  return names;
}

absl::Status FakeFileSystem::Rename(const std::string& from,
                                    const std::string& to) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(NextCall("rename " + from + " " + to));
  if (FindFile(from) != nullptr) return RenameFile(from, to);
  if (FindFolder(from) == nullptr) return NotThere(from);
  if (FindFolder(to) != nullptr) return absl::AlreadyExistsError(to);
  auto node = folders_.now.extract(Split(from).second);
  node.key() = Split(to).second;
  folders_.now.insert(std::move(node));
  folders_.Changed();
  return absl::OkStatus();
}

absl::Status FakeFileSystem::RenameFile(const std::string& from,
                                        const std::string& to) {
  const auto [parent, name] = Split(from);
  if (Split(to).first != parent) return NotThere(Split(to).first);
  if (FindFile(to) != nullptr) return absl::AlreadyExistsError(to);
  Folder* const folder = FindFolder(parent);
  auto node = folder->now.extract(name);
  node.key() = Split(to).second;
  folder->now.insert(std::move(node));
  folder->Changed();
  return absl::OkStatus();
}

absl::Status FakeFileSystem::SyncFolder(const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(NextCall("fsync folder " + path));
  if (path == root_) {
    folders_.Sync();
    return absl::OkStatus();
  }
  Folder* const folder = FindFolder(path);
  if (folder == nullptr) return NotThere(path);
  folder->Sync();
  return absl::OkStatus();
}

absl::Status FakeFileSystem::Remove(const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(NextCall("remove " + path));
  const auto [parent, name] = Split(path);
  if (parent == root_ && folders_.now.erase(name) > 0) {
    folders_.Changed();
    return absl::OkStatus();
  }
  Folder* const folder = FindFolder(parent);
  if (folder == nullptr || folder->now.erase(name) == 0) return NotThere(path);
  folder->Changed();
  return absl::OkStatus();
}

}  // namespace muster
