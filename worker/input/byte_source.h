#ifndef WORKER_INPUT_BYTE_SOURCE_H_
#define WORKER_INPUT_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// The bytes of a file from beginning to end, inflated if the file is gzip.
// Not thread-safe.
class ByteSource {
 public:
  // Opens a regular file; the first two bytes tell gzip from plain.
  // Errors: NotFound; Unavailable (cannot be opened or read); InvalidArgument
  // (not a regular file).
  static absl::StatusOr<std::unique_ptr<ByteSource>> Open(
      const std::string& path);

  virtual ~ByteSource() = default;

  // Reads up to `size` bytes into `dst`. Fewer are returned only at the end.
  // Errors: Unavailable (read error), InvalidArgument (damaged gzip data, or
  // bytes after its end).
  virtual absl::StatusOr<size_t> Read(uint8_t* dst, size_t size) = 0;

  // The most bytes that Read can return in total: the file's size, or what
  // deflate can make of it at best.
  virtual int64_t max_bytes() const = 0;

  // "plain" or "gzip".
  virtual const char* format() const = 0;
};

}  // namespace muster

#endif  // WORKER_INPUT_BYTE_SOURCE_H_
