#include "common/rpc/tcp/frame_header.h"

#include "absl/base/internal/endian.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/rpc/protocol.h"

namespace muster {
namespace {

using absl::little_endian::Load32;
using absl::little_endian::Load64;
using absl::little_endian::Store32;
using absl::little_endian::Store64;

constexpr size_t kCall = 0;
constexpr size_t kKind = 8;
constexpr size_t kFieldsBytes = 12;
constexpr size_t kDataBytes = 16;
constexpr size_t kTimeout = 24;
constexpr size_t kCrc = 28;

}  // namespace

std::string EncodeFrameHeader(const FrameHeader& header) {
  std::string bytes(kFrameHeaderBytes, '\0');
  Store64(&bytes[kCall], header.call);
  Store32(&bytes[kKind], header.kind);
  Store32(&bytes[kFieldsBytes], header.fields_bytes);
  Store64(&bytes[kDataBytes], header.data_bytes);
  Store32(&bytes[kTimeout], header.timeout_ms);
  Store32(&bytes[kCrc], Crc32c(absl::string_view(bytes).substr(0, kCrc)));
  return bytes;
}

absl::StatusOr<FrameHeader> DecodeFrameHeader(absl::string_view bytes) {
  if (Load32(&bytes[kCrc]) != Crc32c(bytes.substr(0, kCrc))) {
    return absl::InvalidArgumentError(
        "the header of a message is damaged, or is none");
  }
  const FrameHeader header = {Load64(&bytes[kCall]), Load32(&bytes[kKind]),
                              Load32(&bytes[kFieldsBytes]),
                              Load64(&bytes[kDataBytes]),
                              Load32(&bytes[kTimeout])};
  if (header.fields_bytes > kMaxHeaderBytes ||
      header.data_bytes > static_cast<uint64_t>(kMaxPartBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", header.fields_bytes, " bytes of fields ",
                     "and ", header.data_bytes, " of tensors; wanted at most ",
                     kMaxHeaderBytes, " and ", kMaxPartBytes));
  }
  return header;
}

}  // namespace muster
