#ifndef WORKER_INPUT_FILE_FILE_BYTES_H_
#define WORKER_INPUT_FILE_FILE_BYTES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/file_descriptor.h"
#include "worker/input/file/byte_source.h"

namespace muster {

// Bytes that are read at any place: a plain file, of which only what is asked
// for is read, or memory. Its
// const methods are thread-safe. A file is read, not mapped:
// if it is cut short meanwhile, that is an error and no signal.
//   ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(path));
//   RETURN_IF_ERROR(file.ReadAt(128, absl::MakeSpan(row)));
class FileBytes {
 public:
  // A gzip file is inflated into memory, and refused if it has more than
  // `max_inflated_bytes` or the machine too little memory. Errors, with the
  // path: OpenRegularFile's and ByteSource's.
  static absl::StatusOr<FileBytes> Open(
      const std::string& path, int64_t max_inflated_bytes = kMaxInflatedBytes);

  // `memory`, which stands for the file `path`.
  FileBytes(std::string path, std::vector<uint8_t> memory);

  FileBytes(FileBytes&&) = default;
  FileBytes& operator=(FileBytes&&) = default;

  // The `size` bytes from `begin` on, in place of all.
  // REQUIRES: 0 <= begin, 0 <= size, begin + size <= this->size().
  FileBytes Part(int64_t begin, int64_t size) &&;

  // For messages.
  const std::string& path() const { return path_; }
  void set_path(std::string path) { path_ = std::move(path); }
  int64_t size() const { return size_; }
  bool in_memory() const { return !descriptor_.valid(); }

  // Fills `dst` with the bytes from `offset` on. Errors, without the path:
  // DataLoss (they are not all there), Unavailable (read error).
  absl::Status ReadAt(int64_t offset, absl::Span<uint8_t> dst) const;

 private:
  FileBytes(std::string path, RegularFile file);

  std::string path_;
  // Not valid: the bytes are those of `memory_`.
  FileDescriptor descriptor_;
  std::vector<uint8_t> memory_;
  // In the file or the memory.
  int64_t begin_ = 0;
  int64_t size_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_FILE_BYTES_H_
