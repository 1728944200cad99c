#ifndef COMMON_BASE_FILE_DESCRIPTOR_H_
#define COMMON_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

#include "absl/strings/string_view.h"

namespace muster {

// Owns an open file descriptor, or none (-1). Movable, not copyable.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { Close(); }

  FileDescriptor(FileDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Leaves it to the caller.
  int Release() { return std::exchange(fd_, -1); }

 private:
  void Close() {
    if (fd_ >= 0) ::close(fd_);
  }

  int fd_ = -1;
};

// Writes all of `bytes`, however often a signal interrupts it. False, with
// errno, if that fails.
bool WriteAll(int fd, absl::string_view bytes);

}  // namespace muster

#endif  // COMMON_BASE_FILE_DESCRIPTOR_H_
