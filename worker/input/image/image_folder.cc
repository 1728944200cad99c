#include "worker/input/image/image_folder.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// Links within links may lead to one folder in as many ways as one likes.
constexpr int64_t kMaxFolders = 1 << 20;
// A longer ending is none.
constexpr size_t kMaxEnding = 10;
// Of the other entries.
constexpr size_t kNamed = 3;
// Names may end in anything.
constexpr size_t kMaxKinds = 8;
constexpr char kFurtherKinds[] = "of further kinds";

enum class EntryKind { kFile, kFolder, kFifo, kSocket, kDevice, kDangling };

struct Entry {
  std::string name;
  EntryKind kind = EntryKind::kFile;
};

// A folder, however it is called.
struct FolderId {
  dev_t device = 0;
  ino_t number = 0;
};

// Images of one folder.
struct FolderImages {
  std::string path;
  std::vector<std::string> names;
};

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};

std::string Quoted(const std::string& path) {
  return absl::StrCat("image folder '", EscapeForLog(path), "'");
}

absl::Status FolderError(const std::string& path, int error) {
  const std::string message =
      absl::StrCat("reading ", Quoted(path), ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == ENOTDIR) return absl::InvalidArgumentError(message);
  return absl::UnavailableError(message);
}

EntryKind KindOfMode(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::kFile;
  if (S_ISDIR(mode)) return EntryKind::kFolder;
  if (S_ISFIFO(mode)) return EntryKind::kFifo;
  return S_ISSOCK(mode) ? EntryKind::kSocket : EntryKind::kDevice;
}

// The kind that the folder itself states saves a look at each of a million
// files; links, and file systems that state none, are looked at.
EntryKind KindOf(const std::string& dir, const dirent& entry) {
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) {
    return KindOfMode(DTTOIF(entry.d_type));
  }
  struct stat status;
  const std::string path = absl::StrCat(dir, "/", entry.d_name);
  if (stat(path.c_str(), &status) != 0) return EntryKind::kDangling;
  return KindOfMode(status.st_mode);
}

// The entries of `dir`, sorted by the bytes of their names.
absl::StatusOr<std::vector<Entry>> ListFolder(const std::string& dir,
                                              WorkProgress* progress) {
  const std::unique_ptr<DIR, CloseDir> stream(opendir(dir.c_str()));
  if (stream == nullptr) return FolderError(dir, errno);
  std::vector<Entry> entries;
  while (true) {
    errno = 0;
    const dirent* const entry = readdir(stream.get());
    if (entry == nullptr) break;
    const absl::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    entries.push_back({std::string(name), KindOf(dir, *entry)});
    if (progress != nullptr) progress->AddRow();
  }
  if (errno != 0) return FolderError(dir, errno);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

bool HasImageEnding(absl::string_view name) {
  return absl::EndsWithIgnoreCase(name, ".jpg") ||
         absl::EndsWithIgnoreCase(name, ".jpeg") ||
         absl::EndsWithIgnoreCase(name, ".png");
}

bool IsHidden(const Entry& entry) { return entry.name[0] == '.'; }

bool IsImage(const Entry& entry) {
  return entry.kind == EntryKind::kFile && !IsHidden(entry) &&
         HasImageEnding(entry.name);
}

// ".gif" of "a.GIF".
std::string EndingOf(absl::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == absl::string_view::npos || name.size() - dot > kMaxEnding) {
    return "without an ending";
  }
  return absl::AsciiStrToLower(name.substr(dot));
}

std::string KindName(const Entry& entry) {
  switch (entry.kind) {
    case EntryKind::kFifo:
      return "FIFO";
    case EntryKind::kSocket:
      return "socket";
    case EntryKind::kDevice:
      return "device";
    case EntryKind::kDangling:
      return "dangling link";
    default:
      break;
  }
  if (IsHidden(entry)) return "hidden";
  return entry.kind == EntryKind::kFolder ? "folder" : EndingOf(entry.name);
}

// A walk through the folders of the classes.
class FolderScan {
 public:
  explicit FolderScan(WorkProgress* progress) : progress_(progress) {}

  absl::StatusOr<ImageFolder> Scan(const std::string& dir);

 private:
  absl::Status AddClass(const std::string& dir, const std::string& name);
  // Finds images in a folder and in those below it. `where`: its path below
  // the data set's.
  absl::Status Enter(const std::string& path, const std::string& where);

  WorkProgress* const progress_;
  ImageFolder folder_;
  int64_t num_folders_ = 0;
  // The folders that are being walked through, from the class's on.
  std::vector<FolderId> above_;
  // Those of one class that have images.
  std::vector<FolderImages> found_;
};

absl::Status FolderScan::Enter(const std::string& path,
                               const std::string& where) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return FolderError(path, errno);
  const auto is_this = [&](const FolderId& id) {
    return id.device == status.st_dev && id.number == status.st_ino;
  };
  if (absl::c_any_of(above_, is_this)) {
    folder_.others.Add(where, "link in a loop");
    return absl::OkStatus();
  }
  if (++num_folders_ > kMaxFolders) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reading ", Quoted(path), ": wanted at most ", kMaxFolders,
        " folders in all, found more; are there links within links?"));
  }
  ASSIGN_OR_RETURN(const std::vector<Entry> entries,
                   ListFolder(path, progress_));
  above_.push_back({status.st_dev, status.st_ino});
  FolderImages images = {path, {}};
  for (const Entry& entry : entries) {
    const std::string place = absl::StrCat(where, "/", entry.name);
    if (IsImage(entry)) {
      images.names.push_back(entry.name);
    } else if (entry.kind == EntryKind::kFolder && !IsHidden(entry)) {
      RETURN_IF_ERROR(Enter(absl::StrCat(path, "/", entry.name), place));
    } else {
      folder_.others.Add(place, KindName(entry));
    }
  }
  above_.pop_back();
  if (!images.names.empty()) found_.push_back(std::move(images));
  return absl::OkStatus();
}

absl::Status FolderScan::AddClass(const std::string& dir,
                                  const std::string& name) {
  const int64_t others_before = folder_.others.count();
  RETURN_IF_ERROR(Enter(absl::StrCat(dir, "/", name), name));
  if (found_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reading ", Quoted(dir), ": class '", EscapeForLog(name),
        "' has no images; wanted files .jpg, .jpeg or .png in it, found ",
        folder_.others.count() - others_before,
        " others; fill the folder, or remove it"));
  }
  std::sort(found_.begin(), found_.end(),
            [](const FolderImages& a, const FolderImages& b) {
              return a.path < b.path;
            });
  const auto class_index = static_cast<int>(folder_.classes.size());
  for (const FolderImages& images : found_) {
    for (const std::string& file : images.names) {
      folder_.files.push_back(
          {absl::StrCat(images.path, "/", file), class_index});
    }
  }
  found_.clear();
  folder_.classes.push_back(name);
  return absl::OkStatus();
}

absl::StatusOr<ImageFolder> FolderScan::Scan(const std::string& dir) {
  ASSIGN_OR_RETURN(const std::vector<Entry> entries,
                   ListFolder(dir, progress_));
  for (const Entry& entry : entries) {
    if (entry.kind == EntryKind::kFolder && !IsHidden(entry)) {
      RETURN_IF_ERROR(AddClass(dir, entry.name));
    } else {
      folder_.others.Add(entry.name, IsImage(entry)
                                         ? "beside the classes' folders"
                                         : KindName(entry));
    }
  }
  if (folder_.classes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reading ", Quoted(dir), ": it has no classes; wanted a sub-folder of ",
        "images for each class, found ", entries.size(),
        " entries that are none; put the images into folders"));
  }
  return std::move(folder_);
}

}  // namespace

void OtherEntries::Add(const std::string& path, absl::string_view kind) {
  ++count_;
  if (first_.size() < kNamed) first_.push_back(EscapeForLog(path));
  std::string name = EscapeForLog(kind);
  if (kinds_.size() >= kMaxKinds && kinds_.count(name) == 0) {
    name = kFurtherKinds;
  }
  ++kinds_[std::move(name)];
}

std::string OtherEntries::ToString() const {
  const auto of_kind = [](std::string* out, const auto& kind) {
    absl::StrAppend(out, kind.second, " ", kind.first);
  };
  const int64_t more = count_ - static_cast<int64_t>(first_.size());
  return absl::StrCat(count_,
                      count_ == 1 ? " entry that is not read ("
                                  : " entries that are not read (",
                      absl::StrJoin(kinds_, ", ", of_kind), "): '",
                      absl::StrJoin(first_, "', '"), "'",
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

absl::StatusOr<ImageFolder> ScanImageFolder(const std::string& dir,
                                            WorkProgress* progress) {
  return FolderScan(progress).Scan(dir);
}

absl::StatusOr<ImageFolder> ListImages(const std::string& dir,
                                       WorkProgress* progress) {
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, ListFolder(dir, progress));
  ImageFolder folder;
  for (const Entry& entry : entries) {
    if (IsImage(entry)) {
      folder.files.push_back({absl::StrCat(dir, "/", entry.name)});
    } else {
      folder.others.Add(entry.name, KindName(entry));
    }
  }
  if (folder.files.empty()) return ScanImageFolder(dir, progress);
  return folder;
}

}  // namespace muster
