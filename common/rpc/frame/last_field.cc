#include "common/rpc/frame/last_field.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"

namespace muster {
namespace {

using google::protobuf::MessageLite;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr size_t kMaxVarintBytes = 10;

bool IsIn(const FieldRange& range, uint32_t tag) {
  const int number = WireFormatLite::GetTagFieldNumber(tag);
  return WireFormatLite::GetTagWireType(tag) ==
             WireFormatLite::WIRETYPE_LENGTH_DELIMITED &&
         number >= range.first && number <= range.last;
}

// Reads until after the tag of a field of the range, or to the end: `begin` is
// not set.
absl::StatusOr<LastField> SkipHeader(const MessageLite& type,
                                     const FieldRange& range, size_t size,
                                     CodedInputStream* input) {
  LastField found;
  for (;;) {
    found.header_bytes = input->CurrentPosition();
    if (found.header_bytes > static_cast<size_t>(kMaxHeaderBytes)) {
      return MalformedFrame(
          type, absl::StrCat("the fields before its ", range.name,
                             " take more than ", kMaxHeaderBytes, " bytes"));
    }
    if (found.header_bytes == size) return found;
    const uint32_t tag = input->ReadTag();
    if (IsIn(range, tag)) {
      found.number = WireFormatLite::GetTagFieldNumber(tag);
      return found;
    }
    if (tag == 0 || !WireFormatLite::SkipField(input, tag)) {
      return MalformedFrame(
          type,
          absl::StrCat("bad field at byte ", found.header_bytes, " of ", size));
    }
  }
}

}  // namespace

absl::Status MalformedFrame(const MessageLite& type, absl::string_view why) {
  return Damaged(absl::InvalidArgumentError(
      absl::StrCat("malformed ", type.GetTypeName(), " frame: ", why)));
}

absl::StatusOr<LastField> FindLastField(const MessageLite& type,
                                        const FieldRange& range, size_t size,
                                        grpc::ByteBuffer* message) {
  grpc::ProtoBufferReader reader(message);
  if (!reader.status().ok()) return MalformedFrame(type, "no buffer");
  CodedInputStream input(&reader);
  ASSIGN_OR_RETURN(LastField found, SkipHeader(type, range, size, &input));
  if (found.number == 0) {
    found.begin = size;
    return found;
  }
  uint64_t bytes = 0;
  if (!input.ReadVarint64(&bytes)) {
    return MalformedFrame(type,
                          absl::StrCat("its ", range.name, " has no length"));
  }
  found.begin = input.CurrentPosition();
  if (bytes == size - found.begin) return found;
  return MalformedFrame(
      type, absl::StrCat("its ", range.name, " should be ", bytes,
                         " bytes and the last field, but ", size - found.begin,
                         " bytes are left"));
}

absl::Status ParseHeader(const LastField& last, grpc::ByteBuffer* message,
                         MessageLite* to) {
  grpc::ProtoBufferReader reader(message);
  if (to->ParseFromBoundedZeroCopyStream(&reader,
                                         static_cast<int>(last.header_bytes))) {
    return absl::OkStatus();
  }
  return MalformedFrame(*to, "its fields do not parse");
}

std::string FieldPrefix(int number, size_t bytes) {
  uint8_t prefix[2 * kMaxVarintBytes];
  uint8_t* end = CodedOutputStream::WriteTagToArray(
      WireFormatLite::MakeTag(number,
                              WireFormatLite::WIRETYPE_LENGTH_DELIMITED),
      prefix);
  end = CodedOutputStream::WriteVarint64ToArray(bytes, end);
  return std::string(reinterpret_cast<const char*>(prefix), end - prefix);
}

}  // namespace muster
