#include "worker/input/image/image_folder.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

enum class EntryKind { kFile, kFolder, kOther };

struct Entry {
  std::string name;
  EntryKind kind = EntryKind::kOther;
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
  return S_ISDIR(mode) ? EntryKind::kFolder : EntryKind::kOther;
}

// The kind that the folder itself states saves a look at each of a million
// files; links, and file systems that state none, are looked at.
EntryKind KindOf(const std::string& dir, const dirent& entry) {
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) {
    return KindOfMode(DTTOIF(entry.d_type));
  }
  struct stat status;
  const std::string path = absl::StrCat(dir, "/", entry.d_name);
  if (stat(path.c_str(), &status) != 0) return EntryKind::kOther;
  return KindOfMode(status.st_mode);
}

// The entries of `dir`, sorted by the bytes of their names.
absl::StatusOr<std::vector<Entry>> ListFolder(const std::string& dir) {
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

void CountOther(const std::string& dir, const Entry& entry,
                ImageFolder& folder) {
  if (folder.num_others++ == 0) {
    folder.example_of_others = absl::StrCat(dir, "/", entry.name);
  }
}

absl::Status AddClass(const std::string& dir, const std::string& name,
                      ImageFolder& folder) {
  const std::string path = absl::StrCat(dir, "/", name);
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, ListFolder(path));
  const auto class_index = static_cast<int>(folder.classes.size());
  const size_t files_before = folder.files.size();
  for (const Entry& entry : entries) {
    if (IsImage(entry)) {
      folder.files.push_back(
          {absl::StrCat(path, "/", entry.name), class_index});
    } else {
      CountOther(path, entry, folder);
    }
  }
  if (folder.files.size() == files_before) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reading ", Quoted(dir), ": class '", EscapeForLog(name),
        "' has no images; wanted files .jpg, .jpeg or .png in it, found ",
        entries.size(), " others; fill the folder, or remove it"));
  }
  folder.classes.push_back(name);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImageFolder> ScanImageFolder(const std::string& dir) {
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, ListFolder(dir));
  ImageFolder folder;
  for (const Entry& entry : entries) {
    if (entry.kind == EntryKind::kFolder && !IsHidden(entry)) {
      RETURN_IF_ERROR(AddClass(dir, entry.name, folder));
    } else {
      CountOther(dir, entry, folder);
    }
  }
  if (folder.classes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reading ", Quoted(dir), ": it has no classes; wanted a sub-folder of ",
        "images for each class, found ", entries.size(),
        " entries that are none; put the images into folders"));
  }
  return folder;
}

absl::StatusOr<ImageFolder> ListImages(const std::string& dir) {
  ASSIGN_OR_RETURN(const std::vector<Entry> entries, ListFolder(dir));
  ImageFolder folder;
  for (const Entry& entry : entries) {
    if (!IsImage(entry)) continue;
    folder.files.push_back({absl::StrCat(dir, "/", entry.name)});
  }
  if (folder.files.empty()) return ScanImageFolder(dir);
  return folder;
}

}  // namespace muster
