#ifndef WORKER_INPUT_FILE_NPY_FILE_H_
#define WORKER_INPUT_FILE_NPY_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/input/file/file_bytes.h"
#include "worker/input/file/npy_header.h"

namespace muster {

// An array of NumPy's, of which rows (the first dimension) are read. Of a plain
// file only what is asked for is read; a gzip file is in memory.
// Immutable, thread-safe.
//   ASSIGN_OR_RETURN(const NpyFile images, NpyFile::Open("train_images.npy"));
//   std::vector<float> row(images.row_values());
//   RETURN_IF_ERROR(images.ReadRows(7, 1, absl::MakeSpan(row)));
class NpyFile {
 public:
  // Errors, with the path: FileBytes::Open's, the header's, InvalidArgument
  // (more or fewer bytes than the header announces).
  static absl::StatusOr<NpyFile> Open(const std::string& path);

  // The same for `bytes`, which are a whole npy file.
  static absl::StatusOr<NpyFile> FromBytes(FileBytes bytes);

  NpyType type() const { return header_.type; }
  const std::vector<int64_t>& shape() const { return header_.shape; }
  int64_t num_rows() const { return header_.shape[0]; }
  // The product of the other dimensions; 1 if there are none.
  int64_t row_values() const { return row_values_; }

  // Reads `count` rows from `first` on as they stand: a byte is 0 to 255, true
  // is 1, and what float32 does not have is rounded.
  // REQUIRES: the rows exist, dst.size() == count * row_values().
  // Errors, with the path: FileBytes::ReadAt's.
  absl::Status ReadRows(int64_t first, int64_t count,
                        absl::Span<float> dst) const;

  // Reads a row of bytes. REQUIRES: type() is kU1, dst.size() == row_values().
  absl::Status ReadBytes(int64_t row, absl::Span<uint8_t> dst) const;
  // The same as ReadRows for labels and identifiers. Errors: also
  // InvalidArgument (the elements are no integers, or above INT64_MAX).
  absl::Status ReadRows(int64_t first, int64_t count,
                        absl::Span<int64_t> dst) const;

 private:
  NpyFile(FileBytes values, NpyHeader header, int64_t row_values);

  FileBytes values_;
  NpyHeader header_;
  int64_t row_values_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_NPY_FILE_H_
