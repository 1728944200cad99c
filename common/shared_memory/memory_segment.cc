#include "common/shared_memory/memory_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

using Access = MemorySegment::Access;

constexpr int SealsFor(Access others) {
  const int size = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  return others == Access::kRead ? size | F_SEAL_FUTURE_WRITE : size;
}

constexpr size_t kHugePage = size_t{2} << 20;
// MADV_COLLAPSE of Linux 6.1, which glibc 2.36 does not name.
constexpr int kCollapse = 25;

// Maps it where a huge page may begin, if it is as large as one.
void* MapAligned(size_t size_bytes, int protection, int fd) {
  constexpr int kFlags = MAP_SHARED | MAP_POPULATE;
  if (size_bytes < kHugePage) {
    return mmap(nullptr, size_bytes, protection, kFlags, fd, 0);
  }
  const size_t room = size_bytes + kHugePage;
  void* const reserved =
      mmap(nullptr, room, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return MAP_FAILED;
  char* const begin = static_cast<char*>(reserved);
  const size_t before =
      (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  void* const data =
      mmap(begin + before, size_bytes, protection, kFlags | MAP_FIXED, fd, 0);
  if (data == MAP_FAILED) {
    munmap(reserved, room);
    return MAP_FAILED;
  }
  // The pages reserved around it are given back.
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t behind = before + (size_bytes + page - 1) / page * page;
  if (before > 0) munmap(begin, before);
  if (behind < room) munmap(begin + behind, room - behind);
  return data;
}

// Where there are no such pages, nothing changes.
void UseHugePages(void* data, size_t size_bytes) {
  const size_t whole = size_bytes / kHugePage * kHugePage;
  if (whole > 0) madvise(data, whole, kCollapse);
}

absl::Status Exhausted(const char* what, size_t size_bytes, int error) {
  return absl::ResourceExhaustedError(absl::StrCat("shared memory of ",
                                                   size_bytes, " bytes: ", what,
                                                   ": ", std::strerror(error)));
}

absl::Status CheckSize(size_t size_bytes) {
  if (size_bytes > 0 && size_bytes <= MemorySegment::kMaxBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("shared memory of ", size_bytes, " bytes; wanted 1 to ",
                   MemorySegment::kMaxBytes));
}

}  // namespace

absl::StatusOr<MemorySegment> MemorySegment::Create(size_t size_bytes,
                                                    Access others) {
  RETURN_IF_ERROR(CheckSize(size_bytes));
  FileDescriptor fd(memfd_create("muster", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Exhausted("memfd_create", size_bytes, errno);
  const auto size = static_cast<off_t>(size_bytes);
  if (ftruncate(fd.get(), size) != 0) {
    return Exhausted("ftruncate", size_bytes, errno);
  }
  const int error = posix_fallocate(fd.get(), 0, size);
  if (error != 0) return Exhausted("posix_fallocate", size_bytes, error);
  ASSIGN_OR_RETURN(MemorySegment segment,
                   Map(std::move(fd), size_bytes, Access::kReadAndWrite));
  // After the mapping: none for writing can be made then.
  if (fcntl(segment.fd(), F_ADD_SEALS, SealsFor(others)) != 0) {
    return Exhausted("sealing", size_bytes, errno);
  }
  return segment;
}

absl::StatusOr<MemorySegment> MemorySegment::Adopt(FileDescriptor fd,
                                                   size_t size_bytes,
                                                   Access access) {
  RETURN_IF_ERROR(CheckSize(size_bytes));
  struct stat about = {};
  if (fstat(fd.get(), &about) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shared memory from the peer: fstat: ", std::strerror(errno)));
  }
  if (about.st_size < 0 || static_cast<size_t>(about.st_size) != size_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory from the peer has ", about.st_size,
                     " bytes; wanted ", size_bytes));
  }
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError(
        "shared memory from the peer is not sealed against shrinking");
  }
  return Map(std::move(fd), size_bytes, access);
}

absl::StatusOr<MemorySegment> MemorySegment::Map(FileDescriptor fd,
                                                 size_t size_bytes,
                                                 Access access) {
  const int protection =
      access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const data = MapAligned(size_bytes, protection, fd.get());
  if (data == MAP_FAILED) return Exhausted("mmap", size_bytes, errno);
  UseHugePages(data, size_bytes);
  return MemorySegment(std::move(fd), static_cast<char*>(data), size_bytes);
}

MemorySegment::~MemorySegment() {
  if (data_ != nullptr) munmap(data_, size_bytes_);
}

MemorySegment::MemorySegment(MemorySegment&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MemorySegment& MemorySegment::operator=(MemorySegment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

}  // namespace muster
