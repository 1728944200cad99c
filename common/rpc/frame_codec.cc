#include "common/rpc/frame_codec.h"

#include <cassert>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/rpc/protocol.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/slice.h"

namespace muster {
namespace {

using google::protobuf::MessageLite;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

// `bytes data = 15` of every frame message.
constexpr uint32_t kDataTag =
    (15 << 3) | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
constexpr size_t kMaxVarintBytes = 10;

// Below this a copy costs less than a reference; it also covers the slices
// that gRPC keeps inside the Slice object, whose address is not stable.
constexpr size_t kCopyBelowBytes = 512;

std::string EncodeHeader(const MessageLite& header, size_t data_bytes) {
  std::string bytes;
  bytes.reserve(header.ByteSizeLong() + 1 + kMaxVarintBytes);
  header.AppendToString(&bytes);
  if (data_bytes == 0) return bytes;
  uint8_t tail[1 + kMaxVarintBytes];
  uint8_t* end = CodedOutputStream::WriteTagToArray(kDataTag, tail);
  end = CodedOutputStream::WriteVarint64ToArray(data_bytes, end);
  bytes.append(reinterpret_cast<const char*>(tail), end - tail);
  return bytes;
}

void DeleteCord(void* cord) { delete static_cast<absl::Cord*>(cord); }

// A slice over `chunk`, which lies in `owner`'s memory.
grpc::Slice ShareChunk(const absl::Cord& owner, absl::string_view chunk) {
  if (chunk.size() < kCopyBelowBytes) {
    return grpc::Slice(chunk.data(), chunk.size());
  }
  return grpc::Slice(const_cast<char*>(chunk.data()), chunk.size(), &DeleteCord,
                     new absl::Cord(owner));
}

// Where a frame's parts are, in bytes from its start.
struct FrameLayout {
  size_t header_bytes = 0;
  size_t data_begin = 0;
};

absl::Status Malformed(const MessageLite& header, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("malformed ", header.GetTypeName(), " frame: ", why));
}

// Walks over the fields before field 15 without keeping them.
absl::StatusOr<FrameLayout> FindLayout(const MessageLite& header,
                                       grpc::ByteBuffer* frame, size_t size) {
  grpc::ProtoBufferReader reader(frame);
  if (!reader.status().ok()) return Malformed(header, "no buffer");
  CodedInputStream input(&reader);
  FrameLayout layout;
  for (;;) {
    layout.header_bytes = input.CurrentPosition();
    if (layout.header_bytes > static_cast<size_t>(kMaxHeaderBytes)) {
      return Malformed(header, absl::StrCat("the fields before its data take "
                                            "more than ",
                                            kMaxHeaderBytes, " bytes"));
    }
    if (layout.header_bytes == size) {
      layout.data_begin = size;
      return layout;
    }
    const uint32_t tag = input.ReadTag();
    if (tag == kDataTag) break;
    if (tag == 0 || !WireFormatLite::SkipField(&input, tag)) {
      return Malformed(header, absl::StrCat("bad field at byte ",
                                            layout.header_bytes, " of ", size));
    }
  }
  uint64_t data_bytes = 0;
  if (!input.ReadVarint64(&data_bytes)) {
    return Malformed(header, "its data has no length");
  }
  layout.data_begin = input.CurrentPosition();
  if (data_bytes != size - layout.data_begin) {
    return Malformed(header,
                     absl::StrCat("its data should be ", data_bytes,
                                  " bytes and the last field, but ",
                                  size - layout.data_begin, " bytes are left"));
  }
  return layout;
}

// The bytes of `slices` from `begin` on.
absl::Cord ShareSlices(const std::vector<grpc::Slice>& slices, size_t begin) {
  absl::Cord data;
  for (const grpc::Slice& slice : slices) {
    if (begin >= slice.size()) {
      begin -= slice.size();
      continue;
    }
    const absl::string_view bytes(
        reinterpret_cast<const char*>(slice.begin()) + begin,
        slice.size() - begin);
    begin = 0;
    if (bytes.size() < kCopyBelowBytes) {
      data.Append(bytes);
    } else {
      data.Append(absl::MakeCordFromExternal(bytes, [slice] {}));
    }
  }
  return data;
}

}  // namespace

grpc::ByteBuffer EncodeFrame(const MessageLite& header,
                             const absl::Cord& data) {
  std::vector<grpc::Slice> slices;
  slices.emplace_back(EncodeHeader(header, data.size()));
  for (const absl::string_view chunk : data.Chunks()) {
    slices.push_back(ShareChunk(data, chunk));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

absl::Status DecodeFrameInto(const grpc::ByteBuffer& frame, MessageLite* header,
                             absl::Cord* data) {
  // A copy of a ByteBuffer shares its slices; reading needs a mutable one.
  grpc::ByteBuffer buffer = frame;
  std::vector<grpc::Slice> slices;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) {
    return Malformed(*header, "it has no bytes");
  }
  size_t size = 0;
  for (const grpc::Slice& slice : slices) size += slice.size();
  ASSIGN_OR_RETURN(const FrameLayout layout,
                   FindLayout(*header, &buffer, size));
  grpc::ProtoBufferReader reader(&buffer);
  if (!header->ParseFromBoundedZeroCopyStream(
          &reader, static_cast<int>(layout.header_bytes))) {
    return Malformed(*header, "its fields do not parse");
  }
  *data = ShareSlices(slices, layout.data_begin);
  return absl::OkStatus();
}

}  // namespace muster
