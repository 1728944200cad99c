#ifndef COMMON_SUMMARY_EVENT_RECORD_H_
#define COMMON_SUMMARY_EVENT_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// The CRC-32C of `data`, masked as in TensorFlow's record files: rotated right
// by 15 bits, plus 0xa282ead8. (A CRC over bytes that hold their own CRC would
// be weak.)
uint32_t MaskedCrc32c(absl::string_view data);

// Appends one record, all integers little-endian:
//   u64 length | u32 masked CRC of the length | data | u32 masked CRC of data
void AppendRecord(absl::string_view data, std::string* out);

}  // namespace muster

#endif  // COMMON_SUMMARY_EVENT_RECORD_H_
