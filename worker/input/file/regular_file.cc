#include "worker/input/file/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

absl::Status OpenError(int error) {
  const std::string reason = std::strerror(error);
  if (error == ENOENT) return absl::NotFoundError(reason);
  return absl::UnavailableError(absl::StrCat("cannot be opened: ", reason));
}

absl::StatusOr<int64_t> RegularFileSize(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot be examined: ", std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError("not a regular file");
  }
  return status.st_size;
}

absl::StatusOr<bool> BeginsAsGzip(int fd) {
  uint8_t magic[2];
  const ssize_t got = pread(fd, magic, sizeof(magic), 0);
  if (got < 0) {
    return absl::UnavailableError(
        absl::StrCat("read error: ", std::strerror(errno)));
  }
  return got == sizeof(magic) && magic[0] == 0x1f && magic[1] == 0x8b;
}

}  // namespace

absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path) {
  RegularFile file;
  // A fifo without a writer would be waited for.
  file.descriptor =
      FileDescriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.descriptor.valid()) return OpenError(errno);
  ASSIGN_OR_RETURN(file.size, RegularFileSize(file.descriptor.get()));
  ASSIGN_OR_RETURN(file.is_gzip, BeginsAsGzip(file.descriptor.get()));
  return file;
}

}  // namespace muster
