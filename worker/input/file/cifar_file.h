#ifndef WORKER_INPUT_FILE_CIFAR_FILE_H_
#define WORKER_INPUT_FILE_CIFAR_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/input/file/file_bytes.h"

namespace muster {

// The label before the pixels of a row, and its range.
enum class CifarKind {
  // One byte, 0 to 9.
  kCifar10,
  // Two bytes: 0 to 19, which is passed over, and 0 to 99.
  kCifar100,
};

enum class PixelOrder {
  // All of red, then green, then blue, as in the file.
  kChannelsFirst,
  // Red, green and blue of each pixel together.
  kChannelsLast,
};

// A binary file of CIFAR-10 or CIFAR-100: rows of a label and 3 x 32 x 32
// bytes. Of a plain file only what is asked for is read; a gzip file is in
// memory. Immutable, thread-safe.
class CifarFile {
 public:
  static constexpr int64_t kChannels = 3;
  static constexpr int64_t kSide = 32;
  static constexpr int64_t kPixelBytes = kChannels * kSide * kSide;

  // Errors, with the path: FileBytes::Open's, InvalidArgument (no whole number
  // of rows, or none).
  static absl::StatusOr<CifarFile> Open(const std::string& path,
                                        CifarKind kind);

  int64_t num_rows() const;
  int64_t num_classes() const {
    return kind_ == CifarKind::kCifar10 ? 10 : 100;
  }

  // Fills `pixels` and returns the label.
  // REQUIRES: 0 <= row < num_rows(), pixels.size() == kPixelBytes.
  // Errors, with path and row: FileBytes::ReadAt's, InvalidArgument (a label
  // out of range).
  absl::StatusOr<int32_t> Read(int64_t row, PixelOrder order,
                               absl::Span<uint8_t> pixels) const;

 private:
  CifarFile(FileBytes bytes, CifarKind kind);

  FileBytes bytes_;
  CifarKind kind_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_CIFAR_FILE_H_
