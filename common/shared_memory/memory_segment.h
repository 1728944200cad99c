#ifndef COMMON_SHARED_MEMORY_MEMORY_SEGMENT_H_
#define COMMON_SHARED_MEMORY_MEMORY_SEGMENT_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"

namespace muster {

// Memory that two processes share: a memfd, which has no name in any file
// system, mapped for reading and writing. Its size is sealed, so that no
// process can take pages away under the other's feet (SIGBUS); what is in it
// may change at any time, if the other process is broken or hostile. Movable,
// not copyable; unmapped and closed at destruction, and gone with the last
// process that had it. In huge pages where it is large and there are such.
class MemorySegment {
 public:
  // A larger one is neither made nor mapped.
  static constexpr size_t kMaxBytes = size_t{1} << 40;

  enum class Access { kReadAndWrite, kRead };

  // Makes one of zero bytes; its pages are there at once, so that a machine
  // without memory is an error here and no signal later. This process writes
  // it; `others` is what who gets the descriptor can do with it.
  // Errors: InvalidArgument for a size of 0 or over kMaxBytes;
  // ResourceExhausted if memory or file descriptors are used up, or the kernel
  // (before 5.1) cannot keep others from writing.
  static absl::StatusOr<MemorySegment> Create(
      size_t size_bytes, Access others = Access::kReadAndWrite);

  // Maps the one behind `fd`, which came from another process. What is written
  // to one for kRead is a fault.
  // Errors: InvalidArgument unless it is a memfd of exactly that size that can
  // never shrink; ResourceExhausted.
  static absl::StatusOr<MemorySegment> Adopt(
      FileDescriptor fd, size_t size_bytes,
      Access access = Access::kReadAndWrite);

  ~MemorySegment();
  MemorySegment(MemorySegment&& other) noexcept;
  MemorySegment& operator=(MemorySegment&& other) noexcept;

  char* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  int fd() const { return fd_.get(); }

 private:
  MemorySegment(FileDescriptor fd, char* data, size_t size_bytes)
      : fd_(std::move(fd)), data_(data), size_bytes_(size_bytes) {}

  static absl::StatusOr<MemorySegment> Map(FileDescriptor fd, size_t size_bytes,
                                           Access access);

  FileDescriptor fd_;
  char* data_ = nullptr;
  size_t size_bytes_ = 0;
};

}  // namespace muster

#endif  // COMMON_SHARED_MEMORY_MEMORY_SEGMENT_H_
