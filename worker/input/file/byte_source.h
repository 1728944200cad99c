#ifndef WORKER_INPUT_FILE_BYTE_SOURCE_H_
#define WORKER_INPUT_FILE_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"

namespace muster {

// An open file of data, at its beginning.
struct RegularFile {
  FileDescriptor descriptor;
  int64_t size = 0;
  // By its first two bytes, whatever its name says.
  bool is_gzip = false;
};

// Opens `path` for reading; a fifo or a terminal is not waited for.
// Errors, without the path: NotFound; Unavailable (cannot be opened or read);
// InvalidArgument (a folder, a fifo, a device).
absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path);

// More than any file of text or records inflates to. What keeps the bytes in
// memory is held to the memory that there is besides.
inline constexpr int64_t kMaxInflatedBytes = int64_t{1} << 40;

// The bytes of a file from beginning to end, inflated if the file is gzip, of
// one member or of several. Not thread-safe.
class ByteSource {
 public:
  // Opens a regular file; its first two bytes tell gzip from plain. Errors:
  // OpenRegularFile's.
  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(
      const std::string& path, int64_t max_inflated_bytes = kMaxInflatedBytes);

  // Reads `file` from its beginning.
  static absl::StatusOr<std::unique_ptr<ByteSource>> FromFile(
      RegularFile file, int64_t max_inflated_bytes = kMaxInflatedBytes);

  virtual ~ByteSource() = default;

  // Reads up to `size` bytes into `dst`. Fewer are returned only at the end.
  // Errors: Unavailable (read error), InvalidArgument (damaged gzip data, bytes
  // after it that are no gzip data, or more than `max_inflated_bytes` in it).
  virtual absl::StatusOr<size_t> Read(uint8_t* dst, size_t size) = 0;

  // The most bytes that Read can return in total: the file's size, or what
  // deflate can make of it at best.
  virtual int64_t max_bytes() const = 0;

  // "plain" or "gzip".
  virtual const char* format() const = 0;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_BYTE_SOURCE_H_
