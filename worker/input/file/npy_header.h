#ifndef WORKER_INPUT_FILE_NPY_HEADER_H_
#define WORKER_INPUT_FILE_NPY_HEADER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The types of elements that are read, all little-endian.
enum class NpyType { kF4, kF8, kI1, kI2, kI4, kI8, kU1, kU2, kU4, kU8, kB1 };

// The name of `type` in a header: "<f4", "|u1".
absl::string_view NpyTypeName(NpyType type);

// The bytes of one element.
int64_t NpyTypeBytes(NpyType type);

struct NpyHeader {
  NpyType type = NpyType::kF4;
  // At least one dimension, all above 0.
  std::vector<int64_t> shape;
};

// The magic string, the version and the length of the text in versions 2 and
// 3; version 1 has two bytes less.
inline constexpr int64_t kNpyPrefixBytes = 12;

// The place of the header's text in the file.
struct NpyTextPlace {
  int64_t begin = 0;
  int64_t size = 0;
};

// Reads the first bytes of a file, at most kNpyPrefixBytes of them.
// Errors: InvalidArgument (not an npy file, cut short, a version other than
// 1.0, 2.0 and 3.0, a text of more than 64 KiB).
absl::StatusOr<NpyTextPlace> ParseNpyPrefix(absl::string_view prefix);

// Reads the text of a header, a Python dictionary of exactly descr,
// fortran_order and shape, as in
//   {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }
// Errors: InvalidArgument (not such a text, a type or an order that is not
// read, no dimension or one of 0).
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text);

}  // namespace muster

#endif  // WORKER_INPUT_FILE_NPY_HEADER_H_
