#include "common/base/read_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

absl::Status ErrnoStatus(int error, absl::string_view path) {
  const std::string message = absl::StrCat(
      "reading ", path, ": ", std::generic_category().message(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == EACCES) return absl::PermissionDeniedError(message);
  return absl::UnavailableError(message);
}

absl::Status CheckFile(const std::string& path, int64_t max_bytes) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return ErrnoStatus(errno, path);
  // A fifo or a terminal would block for ever.
  if (!S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("reading ", path, ": it is not a regular file"));
  }
  if (file.st_size > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("reading ", path, ": it has ", file.st_size,
                     " bytes, at most ", max_bytes, " are read"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(absl::string_view path,
                                     int64_t max_bytes) {
  const std::string name(path);
  RETURN_IF_ERROR(CheckFile(name, max_bytes));
  std::ifstream file(name, std::ios::binary);
  if (!file) return ErrnoStatus(errno, path);
  // The file may have grown since it was checked.
  std::string contents(static_cast<size_t>(max_bytes) + 1, '\0');
  file.read(contents.data(), static_cast<std::streamsize>(contents.size()));
  if (file.bad()) return ErrnoStatus(EIO, path);
  contents.resize(static_cast<size_t>(file.gcount()));
  if (static_cast<int64_t>(contents.size()) > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("reading ", path, ": more than ", max_bytes, " bytes"));
  }
  return contents;
}

}  // namespace muster
