#ifndef COMMON_CHECKPOINT_SAFETENSORS_READER_H_
#define COMMON_CHECKPOINT_SAFETENSORS_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/safetensors_header.h"

namespace muster {

// Reads tensors from a safetensors file, ours or anybody's. Only the header is
// kept in memory. Thread-safe.
class SafetensorsReader {
 public:
  // Opens the file and checks its whole header. `file_system` is not kept.
  // Errors: DataLoss naming the file and what is wrong with it; those of
  // FileSystem.
  static absl::StatusOr<std::unique_ptr<SafetensorsReader>> Open(
      FileSystem* file_system, const std::string& path);

  // In the order of their bytes.
  const std::vector<SafetensorsEntry>& entries() const {
    return header_.entries;
  }
  const std::map<std::string, std::string>& metadata() const {
    return header_.metadata;
  }
  int64_t file_bytes() const { return file_->size_bytes(); }

  // The entry of a tensor. Errors: NotFound.
  absl::StatusOr<const SafetensorsEntry*> Find(absl::string_view name) const;

  // Reads `length` elements of a tensor from element `offset` on, as they are
  // in the file: row-major, little-endian. dst has length times the size of an
  // element. Errors: NotFound for an unknown tensor; InvalidArgument for a
  // range outside it, or a dtype without FormatDtypeBytes.
  absl::Status Read(absl::string_view name, int64_t offset, int64_t length,
                    void* dst) const;

  // The CRC-32C of a tensor's bytes, read in pieces. Errors: NotFound.
  absl::StatusOr<uint32_t> TensorCrc32c(absl::string_view name) const;

 private:
  SafetensorsReader(std::unique_ptr<ReadableFile> file, std::string path,
                    int64_t data_start, SafetensorsHeader header);

  const std::unique_ptr<ReadableFile> file_;
  const std::string path_;
  const int64_t data_start_;
  const SafetensorsHeader header_;
  // Into header_.
  std::map<std::string, const SafetensorsEntry*, std::less<>> by_name_;
};

}  // namespace muster

#endif  // COMMON_CHECKPOINT_SAFETENSORS_READER_H_
