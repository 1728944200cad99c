#ifndef COMMON_CHECKPOINT_SAFETENSORS_HEADER_H_
#define COMMON_CHECKPOINT_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/shape.h"
#include "proto/tensor.pb.h"

namespace muster {

// One tensor of a safetensors file.
struct SafetensorsEntry {
  std::string name;
  // FLOAT32, FLOAT64, INT64, INT32 or UINT8; UNSPECIFIED for a dtype of the
  // format that Muster does not have.
  DataType dtype = DATA_TYPE_UNSPECIFIED;
  Shape shape;
  // In bytes from the start of the data section.
  int64_t begin = 0;
  int64_t end = 0;
  // As the file names it: "F32", "BF16"; any text. Set by LayOut and Parse.
  std::string format_dtype = {};
};

struct SafetensorsHeader {
  // By `begin`.
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

// The bytes before the header: its length as little-endian u64.
inline constexpr int64_t kSafetensorsPrefixBytes = 8;
// The format's limit of the header's length.
inline constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;

// Bytes of an element of a dtype of the format ("BF16"); 0 for an unknown one,
// and for those whose elements are not whole bytes.
int64_t FormatDtypeBytes(absl::string_view format_dtype);

// Sorts entries as the format wants it (wider dtypes first, then by name) and
// sets their offsets. Errors: InvalidArgument for an unsupported dtype, two
// tensors of one name, a name that is empty or not printable ASCII, or more
// bytes than 2^63.
absl::StatusOr<std::vector<SafetensorsEntry>> LayOutSafetensors(
    std::vector<SafetensorsEntry> entries);

// The length prefix and the JSON text, padded with spaces to a multiple of 8.
// REQUIRES: entries of LayOutSafetensors.
std::string FormatSafetensorsHeader(
    const std::vector<SafetensorsEntry>& entries);

// Parses and checks the JSON text of a file with `data_bytes` bytes after it.
// Refused with DataLoss, naming the tensor where there is one: text that is not
// UTF-8 or not exactly the format's JSON, duplicate keys, a missing or unknown
// field, offsets with a hole or an overlap or that do not start at 0 or do not
// end at `data_bytes`, a shape whose size overflows or is not end - begin.
// A tensor of a dtype without FormatDtypeBytes is an entry like any other, of
// the bytes that it claims: only who reads it is refused.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json,
                                                         int64_t data_bytes);

}  // namespace muster

#endif  // COMMON_CHECKPOINT_SAFETENSORS_HEADER_H_
