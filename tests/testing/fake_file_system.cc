#include "tests/testing/fake_file_system.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

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
    RETURN_IF_ERROR(fs_->NextCall("append"));
    file_->now.append(data.data(), data.size());
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    absl::MutexLock lock(&fs_->mu_);
    RETURN_IF_ERROR(fs_->NextCall("fsync"));
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
  Restart();
  absl::MutexLock lock(&mu_);
  now_ = durable_;
  for (auto& [name, folder] : now_) {
    folder->now = folder->durable;
    for (auto& [file_name, file] : folder->now) file->now = file->durable;
  }
}

absl::Status FakeFileSystem::NextCall(const std::string& what) {
  ++calls_;
  const bool fails =
      fail_at_ != 0 && (fail_on_ ? calls_ >= fail_at_ : calls_ == fail_at_);
  return fails ? Annotate(error_, what) : absl::OkStatus();
}

FakeFileSystem::Folder* FakeFileSystem::FindFolder(
    const std::string& path) const {
  const auto [parent, name] = Split(path);
  const auto it = now_.find(name);
  return parent == root_ && it != now_.end() ? it->second.get() : nullptr;
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
  file->now = file->durable = std::move(contents);
}

absl::StatusOr<std::unique_ptr<WritableFile>> FakeFileSystem::CreateFile(
    const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(NextCall("create"));
  const auto [parent, name] = Split(path);
  Folder* const folder = FindFolder(parent);
  if (folder == nullptr) return NotThere(parent);
  if (folder->now.count(name) > 0) return absl::AlreadyExistsError(path);
  const FilePtr file = std::make_shared<File>();
  folder->now[name] = file;
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
  RETURN_IF_ERROR(NextCall("create folder"));
  const auto [parent, name] = Split(path);
  if (parent != root_) return NotThere(parent);
  if (!now_.emplace(name, std::make_shared<Folder>()).second) {
    return absl::AlreadyExistsError(path);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FakeFileSystem::List(
    const std::string& path) {
  absl::MutexLock lock(&mu_);
  std::vector<std::string> names;
  if (path == root_) {
    for (const auto& [name, folder] : now_) names.push_back(name);
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
  RETURN_IF_ERROR(NextCall("rename"));
  if (FindFolder(from) == nullptr) return NotThere(from);
  if (FindFolder(to) != nullptr) return absl::AlreadyExistsError(to);
  auto node = now_.extract(Split(from).second);
  node.key() = Split(to).second;
  now_.insert(std::move(node));
  return absl::OkStatus();
}

absl::Status FakeFileSystem::SyncFolder(const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(NextCall("fsync folder"));
  if (path == root_) {
    durable_ = now_;
    return absl::OkStatus();
  }
  Folder* const folder = FindFolder(path);
  if (folder == nullptr) return NotThere(path);
  folder->durable = folder->now;
  return absl::OkStatus();
}

absl::Status FakeFileSystem::Remove(const std::string& path) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(NextCall("remove"));
  const auto [parent, name] = Split(path);
  if (parent == root_ && now_.erase(name) > 0) return absl::OkStatus();
  Folder* const folder = FindFolder(parent);
  if (folder == nullptr || folder->now.erase(name) == 0) return NotThere(path);
  return absl::OkStatus();
}

}  // namespace muster
