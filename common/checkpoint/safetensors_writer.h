#ifndef COMMON_CHECKPOINT_SAFETENSORS_WRITER_H_
#define COMMON_CHECKPOINT_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/safetensors_header.h"

namespace muster {

// Writes one safetensors file as its bytes come, by Append in the order of the
// file or by AppendTo in that of each tensor; keeps none of them. One thread at
// a time. After an error every further call fails, and the file is
// to be removed by the owner of its folder.
//
//   ASSIGN_OR_RETURN(auto writer, SafetensorsWriter::Create(fs, path,
//   tensors)); for (const SafetensorsEntry& entry : writer->entries()) {
//     RETURN_IF_ERROR(writer->Append(BytesOf(entry.name)));  // or in pieces
//   }
//   RETURN_IF_ERROR(writer->Finish());
class SafetensorsWriter {
 public:
  // Makes the file and writes its header. Offsets in `tensors` are ignored.
  // `file_system` must outlive the writer. Errors: those of LayOutSafetensors
  // and FileSystem.
  static absl::StatusOr<std::unique_ptr<SafetensorsWriter>> Create(
      FileSystem* file_system, const std::string& path,
      std::vector<SafetensorsEntry> tensors);

  // In the order in which Append wants their bytes: row-major, little-endian.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }

  // Writes the next bytes. A call may end in the middle of a tensor or go
  // beyond it. Errors: InvalidArgument past the last tensor's end.
  absl::Status Append(absl::string_view data);

  // Writes the next bytes of one tensor, by its index in entries(). A file is
  // written by this alone or by Append alone. Errors: InvalidArgument past the
  // tensor's end.
  absl::Status AppendTo(size_t entry, absl::string_view data);

  // Syncs the file, reads it again and compares size and CRC. Errors:
  // FailedPrecondition if bytes are missing; DataLoss if the file differs.
  absl::Status Finish();

  // After Finish: of each entry's bytes, in the order of entries().
  const std::vector<uint32_t>& crcs() const { return crcs_; }
  // After Finish: the whole file.
  int64_t file_bytes() const { return header_bytes_ + written_; }

 private:
  SafetensorsWriter(FileSystem* file_system, std::string path,
                    std::unique_ptr<WritableFile> file,
                    std::vector<SafetensorsEntry> entries);

  int64_t data_bytes() const {
    return entries_.empty() ? 0 : entries_.back().end;
  }
  // May `size` bytes be written at `at`, before `end` of the data section?
  absl::Status CheckWrite(int64_t size, int64_t at, int64_t end) const;
  // Counts bytes of a tensor that were written.
  void Count(size_t entry, absl::string_view data);
  absl::Status Verify() const;

  FileSystem* const file_system_;
  const std::string path_;
  const std::vector<SafetensorsEntry> entries_;
  std::unique_ptr<WritableFile> file_;
  int64_t header_bytes_ = 0;
  uint32_t header_crc_ = 0;
  // Bytes of the data section, and of each tensor.
  int64_t written_ = 0;
  std::vector<int64_t> tensor_bytes_;
  // The entry that Append's next byte belongs to.
  size_t current_ = 0;
  std::vector<uint32_t> crcs_;
};

// The CRC-32C of `length` bytes of a file, read in pieces of 1 MiB.
absl::StatusOr<uint32_t> FileCrc32c(const ReadableFile& file, int64_t offset,
                                    int64_t length);

}  // namespace muster

#endif  // COMMON_CHECKPOINT_SAFETENSORS_WRITER_H_
