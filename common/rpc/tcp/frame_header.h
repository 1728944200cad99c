#ifndef COMMON_RPC_TCP_FRAME_HEADER_H_
#define COMMON_RPC_TCP_FRAME_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The beginning of a request, or of its answer, on a TCP connection: the fields
// of a protobuf message follow it, then the bytes of its tensors.
struct FrameHeader {
  // The request's number, from 1 upwards; an answer has its request's.
  uint64_t call = 0;
  // The DataMethod of a request, the status code of an answer.
  uint32_t kind = 0;
  uint32_t fields_bytes = 0;
  uint64_t data_bytes = 0;
  // The time for which the sender of a request waits.
  uint32_t timeout_ms = 0;
};

// On the wire: the fields above, little-endian, and a CRC-32C of them, without
// which a changed length would make the rest of a connection senseless.
inline constexpr size_t kFrameHeaderBytes = 32;

std::string EncodeFrameHeader(const FrameHeader& header);

// Errors: InvalidArgument for other bytes, or for more than kMaxHeaderBytes of
// fields and kMaxPartBytes of data. REQUIRES: kFrameHeaderBytes bytes.
absl::StatusOr<FrameHeader> DecodeFrameHeader(absl::string_view bytes);

}  // namespace muster

#endif  // COMMON_RPC_TCP_FRAME_HEADER_H_
