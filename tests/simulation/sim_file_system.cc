#include "tests/simulation/sim_file_system.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

class SimFileSystem::Writable : public WritableFile {
 public:
  Writable(SimFileSystem* fs, std::unique_ptr<WritableFile> file)
      : fs_(fs), file_(std::move(file)) {}

  // Takes no time and is no event: what is appended lies in the page cache
  // until Sync, and into how many pieces a file is cut is no promise.
  absl::Status Append(absl::string_view data) override {
    RETURN_IF_ERROR(fs_->CheckWrite("append"));
    RETURN_IF_ERROR(fs_->CheckRoom("append"));
    return file_->Append(data);
  }
  absl::Status WriteAt(int64_t offset, absl::string_view data) override {
    RETURN_IF_ERROR(fs_->CheckWrite("write"));
    RETURN_IF_ERROR(fs_->CheckRoom("write"));
    return file_->WriteAt(offset, data);
  }
  absl::Status Sync() override {
    RETURN_IF_ERROR(fs_->PauseToWrite("sync"));
    if (fs_->options_.bug == Bug::kNoFileSync) return absl::OkStatus();
    return file_->Sync();
  }

 private:
  SimFileSystem* const fs_;
  const std::unique_ptr<WritableFile> file_;
};

absl::Status SimFileSystem::Pause(const char* call) {
  if (!dead_) options_.process->Sleep(random_.About(options_.mean));
  return CheckAlive(call);
}

absl::Status SimFileSystem::CheckAlive(const char* call) const {
  if (!dead_) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, ": this process is dead"));
}

absl::Status SimFileSystem::PauseToWrite(const char* call) {
  RETURN_IF_ERROR(Pause(call));
  options_.process->simulator()->Note(
      call, static_cast<int64_t>(options_.incarnation));
  return CheckWrite(call);
}

absl::Status SimFileSystem::CheckWrite(const char* call) const {
  RETURN_IF_ERROR(CheckAlive(call));
  if (options_.disk->lock_holder != options_.incarnation) {
    options_.oracle->Fail(
        absl::StrCat(call, " by a chief that has not the train_dir's lock"));
  }
  return absl::OkStatus();
}

absl::Status SimFileSystem::PauseToGrow(const char* call) {
  RETURN_IF_ERROR(PauseToWrite(call));
  return CheckRoom(call);
}

absl::Status SimFileSystem::CheckRoom(const char* call) const {
  if (options_.process->Now() >= options_.disk->full_until) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(call, ": no space left on the disk"));
}

absl::StatusOr<std::unique_ptr<WritableFile>> SimFileSystem::CreateFile(
    const std::string& path) {
  RETURN_IF_ERROR(PauseToGrow("create file"));
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                   options_.disk->files.CreateFile(path));
  return std::make_unique<Writable>(this, std::move(file));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> SimFileSystem::OpenFile(
    const std::string& path) {
  RETURN_IF_ERROR(Pause("open"));
  return options_.disk->files.OpenFile(path);
}

absl::Status SimFileSystem::CreateFolder(const std::string& path) {
  RETURN_IF_ERROR(PauseToGrow("create folder"));
  return options_.disk->files.CreateFolder(path);
}

absl::StatusOr<std::vector<std::string>> SimFileSystem::List(
    const std::string& path) {
  RETURN_IF_ERROR(Pause("list"));
  if (options_.bug == Bug::kForgetsCheckpoints) {
    return std::vector<std::string>();
  }
  return options_.disk->files.List(path);
}

absl::Status SimFileSystem::Rename(const std::string& from,
                                   const std::string& to) {
  RETURN_IF_ERROR(PauseToWrite("rename"));
  return options_.disk->files.Rename(from, to);
}

absl::Status SimFileSystem::SyncFolder(const std::string& path) {
  RETURN_IF_ERROR(PauseToWrite("sync folder"));
  if (options_.bug == Bug::kNoFolderSync) return absl::OkStatus();
  return options_.disk->files.SyncFolder(path);
}

absl::Status SimFileSystem::Remove(const std::string& path) {
  RETURN_IF_ERROR(PauseToWrite("remove"));
  return options_.disk->files.Remove(path);
}

}  // namespace muster
