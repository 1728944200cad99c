#include "worker/input/file/expand_files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool IsRegular(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

absl::Status CheckRegular(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0) {
    if (S_ISREG(status.st_mode)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("looking for data: '", path, "' is ",
                     S_ISDIR(status.st_mode) ? "a folder" : "no regular file",
                     "; wanted files, or a pattern as '", path, "/*'"));
  }
  const int error = errno;
  const std::string message =
      absl::StrCat("looking for data: '", path, "' in the folder '",
                   FolderOf(path), "': ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  return absl::UnavailableError(message);
}

absl::StatusOr<std::vector<std::string>> Matches(const std::string& pattern) {
  glob_t found = {};
  const int result = glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  const int error = errno;
  std::vector<std::string> paths(found.gl_pathv,
                                 found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (result == 0) return paths;
  const std::string context = absl::StrCat(
      "looking for data: '", pattern, "' in the folder '", FolderOf(pattern));
  if (result == GLOB_NOMATCH) {
    return absl::NotFoundError(
        absl::StrCat(context, "': wanted at least one file, found none"));
  }
  return absl::UnavailableError(
      absl::StrCat(context, "': ", std::strerror(error)));
}

absl::StatusOr<std::vector<std::string>> ExpandOne(const std::string& name) {
  if (name.empty()) {
    return absl::InvalidArgumentError(
        "looking for data: wanted a file or a pattern, found an empty name");
  }
  if (IsRegular(name) || name.find_first_of("*?[") == std::string::npos) {
    return std::vector<std::string>{name};
  }
  return Matches(name);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandFiles(absl::string_view text) {
  if (IsRegular(std::string(text))) {
    return std::vector<std::string>{std::string(text)};
  }
  std::vector<std::string> files;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(const std::vector<std::string> found,
                     ExpandOne(std::string(name)));
    files.insert(files.end(), found.begin(), found.end());
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  for (const std::string& file : files) RETURN_IF_ERROR(CheckRegular(file));
  return files;
}

}  // namespace muster
