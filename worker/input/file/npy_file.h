#ifndef WORKER_INPUT_FILE_NPY_FILE_H_
#define WORKER_INPUT_FILE_NPY_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/input/file/file_bytes.h"

namespace muster {

// The types of elements that are read, all little-endian.
enum class NpyType { kF4, kF8, kI1, kI2, kI4, kI8, kU1, kU2, kU4, kU8, kB1 };

// An array of NumPy's, of which rows (the first dimension) are read. Of a plain
// file only what is asked for is read; a gzip file is in memory, and so is an
// array of several dimensions in Fortran order (column-major), with its rows
// put together. Immutable, thread-safe.
//   ASSIGN_OR_RETURN(const NpyFile images, NpyFile::Open("train_images.npy"));
//   std::vector<float> row(images.row_values());
//   RETURN_IF_ERROR(images.ReadRows(7, 1, absl::MakeSpan(row)));
class NpyFile {
 public:
  // Errors, with the path: FileBytes::Open's; InvalidArgument (not an npy file,
  // a damaged header, a version other than 1.0, 2.0 and 3.0, a type that is
  // not read, no dimension or one of 0, more or fewer bytes than the header
  // announces, too little memory).
  static absl::StatusOr<NpyFile> Open(const std::string& path);
  // The same for `bytes`, which are a whole npy file.
  static absl::StatusOr<NpyFile> FromBytes(FileBytes bytes);

  NpyType type() const { return header_.type; }
  // At least one dimension, all above 0.
  const std::vector<int64_t>& shape() const { return header_.shape; }
  int64_t num_rows() const { return header_.shape[0]; }
  // The product of the other dimensions; 1 if there are none.
  int64_t row_values() const { return row_values_; }

  // Reads `count` rows from `first` on as they stand: a byte is 0 to 255, true
  // is 1, and what float32 does not have is rounded.
  // REQUIRES: the rows exist, dst.size() == count * row_values().
  // Errors, with the path: FileBytes::ReadAt's; InvalidArgument, with row and
  // column (NaN, infinite, or beyond float32).
  absl::Status ReadRows(int64_t first, int64_t count,
                        absl::Span<float> dst) const;
  // The same for labels and identifiers. Errors: also InvalidArgument (the
  // elements are no integers, or above INT64_MAX).
  absl::Status ReadRows(int64_t first, int64_t count,
                        absl::Span<int64_t> dst) const;
  // Reads a row of bytes. REQUIRES: type() is kU1, dst.size() == row_values().
  absl::Status ReadBytes(int64_t row, absl::Span<uint8_t> dst) const;

 private:
  struct Header {
    NpyType type = NpyType::kF4;
    std::vector<int64_t> shape;
    bool is_fortran = false;
  };

  NpyFile(FileBytes values, Header header, int64_t row_values);

  static absl::StatusOr<Header> ParseHeader(absl::string_view text);
  // Reads the header, and where it ends.
  static absl::StatusOr<Header> ReadHeader(const FileBytes& bytes,
                                           int64_t* end);
  template <typename T>
  absl::Status ReadValues(int64_t first, int64_t count,
                          absl::Span<T> dst) const;
  // The error of element `at`.
  absl::Status NotFinite(int64_t at) const;

  FileBytes values_;
  Header header_;
  int64_t row_values_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_NPY_FILE_H_
