#ifndef COMMON_RPC_FRAME_LAST_FIELD_H_
#define COMMON_RPC_FRAME_LAST_FIELD_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"

namespace muster {

// The fields that the search ends at.
struct FieldRange {
  int first = 0;
  int last = 0;
  // The word of an error for such a field: "data".
  absl::string_view name;
};

// The place of a serialized message's last field, in bytes from its start.
struct LastField {
  // The size of the fields before it.
  size_t header_bytes = 0;
  // 0 if the message has no such field.
  int number = 0;
  // The place of its contents, which go on to the end of the message.
  size_t begin = 0;
};

// Finds the first length-delimited field of the range in `message`, which has
// `size` bytes and is of the type of `type`; keeps nothing of the fields before
// it. Errors: InvalidArgument, naming the type, unless that field is the last
// one and exactly as long as it says, after at most kMaxHeaderBytes.
absl::StatusOr<LastField> FindLastField(
    const google::protobuf::MessageLite& type, const FieldRange& range,
    size_t size, grpc::ByteBuffer* message);

// Parses the fields before the last one into `to`. Errors: InvalidArgument.
absl::Status ParseHeader(const LastField& last, grpc::ByteBuffer* message,
                         google::protobuf::MessageLite* to);

// The error of a frame that is none.
absl::Status MalformedFrame(const google::protobuf::MessageLite& type,
                            absl::string_view why);

// Tag and length of a length-delimited field, as they stand before its
// contents.
std::string FieldPrefix(int number, size_t bytes);

}  // namespace muster

#endif  // COMMON_RPC_FRAME_LAST_FIELD_H_
