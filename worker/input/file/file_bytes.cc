#include "worker/input/file/file_bytes.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"

namespace muster {
namespace {

constexpr int64_t kFirstInflatedBytes = 64 * 1024;

absl::StatusOr<std::vector<uint8_t>> ReadAll(ByteSource& source) {
  std::vector<uint8_t> bytes;
  int64_t wanted = kFirstInflatedBytes;
  while (true) {
    // While a vector grows there are the old one and the new one.
    RETURN_IF_ERROR(
        CheckMemory("inflating it", wanted + wanted / 2, OwnMemoryLimit()));
    const size_t begin = bytes.size();
    bytes.resize(static_cast<size_t>(wanted));
    ASSIGN_OR_RETURN(const size_t got,
                     source.Read(bytes.data() + begin, bytes.size() - begin));
    if (begin + got < bytes.size()) {
      bytes.resize(begin + got);
      bytes.shrink_to_fit();
      return bytes;
    }
    wanted *= 2;
  }
}

absl::Status PreadAll(int fd, int64_t offset, absl::Span<uint8_t> dst) {
  while (!dst.empty()) {
    const ssize_t got = pread(fd, dst.data(), dst.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::UnavailableError(
          absl::StrCat("read error: ", std::strerror(errno)));
    }
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(
          "the file became shorter while it was open: it ends at ", offset));
    }
    offset += got;
    dst.remove_prefix(static_cast<size_t>(got));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FileBytes> FileBytes::Open(const std::string& path,
                                          int64_t max_inflated_bytes) {
  const std::string context = absl::StrCat("reading '", path, "'");
  absl::StatusOr<RegularFile> file = OpenRegularFile(path);
  if (!file.ok()) return Annotate(file.status(), context);
  if (!file->is_gzip) return FileBytes(path, *std::move(file));
  absl::StatusOr<std::unique_ptr<ByteSource>> source =
      ByteSource::FromFile(*std::move(file), max_inflated_bytes);
  if (!source.ok()) return Annotate(source.status(), context);
  absl::StatusOr<std::vector<uint8_t>> bytes = ReadAll(**source);
  if (!bytes.ok()) return Annotate(bytes.status(), context);
  return FileBytes(path, *std::move(bytes));
}

FileBytes::FileBytes(std::string path, std::vector<uint8_t> memory)
    : path_(std::move(path)),
      memory_(std::move(memory)),
      size_(static_cast<int64_t>(memory_.size())) {}

FileBytes::FileBytes(std::string path, RegularFile file)
    : path_(std::move(path)),
      descriptor_(std::move(file.descriptor)),
      size_(file.size) {}

FileBytes FileBytes::Part(int64_t begin, int64_t size) && {
  begin_ += begin;
  size_ = size;
  return std::move(*this);
}

absl::Status FileBytes::ReadAt(int64_t offset, absl::Span<uint8_t> dst) const {
  const int64_t wanted = static_cast<int64_t>(dst.size());
  if (offset < 0 || offset > size_ || wanted > size_ - offset) {
    return absl::DataLossError(absl::StrCat(
        "cut short: wanted ", wanted, " bytes at ", offset, ", found ",
        std::clamp<int64_t>(size_ - offset, 0, size_)));
  }
  if (descriptor_.valid()) {
    return PreadAll(descriptor_.get(), begin_ + offset, dst);
  }
  std::copy_n(memory_.data() + begin_ + offset, wanted, dst.data());
  return absl::OkStatus();
}

}  // namespace muster
