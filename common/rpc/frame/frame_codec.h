#ifndef COMMON_RPC_FRAME_FRAME_CODEC_H_
#define COMMON_RPC_FRAME_FRAME_CODEC_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "common/base/status_macros.h"
#include "common/rpc/parameter_link.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"

namespace muster {

// Writes a frame as README.md describes it: the header's fields, the tag and
// length of its field 15, then the bytes of `data`, which are not copied: the
// result's slices share the Cord's memory and hold a reference to it, however
// long gRPC keeps them. An empty `data` is left out, as protobuf would.
// REQUIRES: the header's own `data` field is empty.
grpc::ByteBuffer EncodeFrame(const google::protobuf::MessageLite& header,
                             const absl::Cord& data);

// Reads a frame into `header` and `data`. `data` holds the received frame, and
// each piece of it the whole; nothing but the header is parsed or copied.
// A slice may begin at any address: do not take floats to be aligned.
// Errors: InvalidArgument, naming the message type, unless the header is a
// valid message of at most kMaxHeaderBytes and field 15, if there, is the last
// field and exactly as long as it says.
absl::Status DecodeFrameInto(const grpc::ByteBuffer& frame,
                             google::protobuf::MessageLite* header,
                             absl::Cord* data);

template <typename Header>
absl::StatusOr<Frame<Header>> DecodeFrame(const grpc::ByteBuffer& buffer) {
  Frame<Header> frame;
  RETURN_IF_ERROR(DecodeFrameInto(buffer, &frame.header, &frame.data));
  return frame;
}

}  // namespace muster

#endif  // COMMON_RPC_FRAME_FRAME_CODEC_H_
