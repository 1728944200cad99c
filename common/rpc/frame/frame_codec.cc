#include "common/rpc/frame/frame_codec.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/rpc/frame/last_field.h"
#include "grpcpp/support/slice.h"

namespace muster {
namespace {

using google::protobuf::MessageLite;

// `bytes data = 15` of every frame message.
constexpr FieldRange kData = {15, 15, "data"};

// Below this a copy costs less than a reference; it also covers the slices
// that gRPC keeps inside the Slice object, whose address is not stable.
constexpr size_t kCopyBelowBytes = 512;

std::string EncodeHeader(const MessageLite& header, size_t data_bytes) {
  std::string bytes = header.SerializeAsString();
  if (data_bytes > 0) bytes += FieldPrefix(kData.first, data_bytes);
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

// The bytes of `frame`, whose slices these are, from `begin` on. They hold the
// frame, not slices: a received slice that is the last one of its memory must
// not be dropped by itself. gRPC then looks after its quota, which it cannot on
// a thread that is not in one of its calls (it follows a null pointer if the
// quota is exceeded just then); the end of a ByteBuffer is such a call.
absl::Cord ShareSlices(const grpc::ByteBuffer& frame,
                       const std::vector<grpc::Slice>& slices, size_t begin) {
  const auto owner = std::make_shared<const grpc::ByteBuffer>(frame);
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
      data.Append(absl::MakeCordFromExternal(bytes, [owner] {}));
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
    return MalformedFrame(*header, "it has no bytes");
  }
  ASSIGN_OR_RETURN(const LastField last,
                   FindLastField(*header, kData, buffer.Length(), &buffer));
  RETURN_IF_ERROR(ParseHeader(last, &buffer, header));
  *data = ShareSlices(frame, slices, last.begin);
  return absl::OkStatus();
}

}  // namespace muster
