#include "common/rpc/frame/exchange_codec.h"

#include <string>
#include <vector>

#include "common/base/status_macros.h"
#include "common/rpc/frame/last_field.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/slice.h"
#include "proto/parameter_service.pb.h"

namespace muster {
namespace {

// parameter_service.proto keeps the numbers above 10 for requests.
constexpr FieldRange kBodies = {11, 0x1fffffff, "message"};

static_assert(static_cast<int>(DataMethod::kLoad) ==
              ExchangeRequest::kLoadFieldNumber);
static_assert(static_cast<int>(DataMethod::kPull) ==
              ExchangeRequest::kPullFieldNumber);
static_assert(static_cast<int>(DataMethod::kPush) ==
              ExchangeRequest::kPushFieldNumber);
static_assert(static_cast<int>(DataMethod::kReadSnapshot) ==
              ExchangeRequest::kReadSnapshotFieldNumber);

// The bytes of `slices` from `begin` on.
grpc::ByteBuffer Rest(const std::vector<grpc::Slice>& slices, size_t begin) {
  std::vector<grpc::Slice> rest;
  rest.reserve(slices.size());
  for (const grpc::Slice& slice : slices) {
    if (begin >= slice.size()) {
      begin -= slice.size();
    } else {
      rest.push_back(begin == 0 ? slice : slice.sub(begin, slice.size()));
      begin = 0;
    }
  }
  return grpc::ByteBuffer(rest.data(), rest.size());
}

}  // namespace

grpc::ByteBuffer EncodeExchange(const google::protobuf::MessageLite& header,
                                const ExchangeBody& body) {
  std::vector<grpc::Slice> slices;
  std::vector<grpc::Slice> message;
  // Fails for a buffer that was never filled: an empty message.
  if (body.message.Valid() && !body.message.Dump(&message).ok()) {
    message.clear();
  }
  slices.reserve(message.size() + 1);
  slices.emplace_back(
      header.SerializeAsString() +
      FieldPrefix(static_cast<int>(body.method), body.message.Length()));
  for (grpc::Slice& slice : message) slices.push_back(std::move(slice));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

absl::Status DecodeExchange(const grpc::ByteBuffer& bytes,
                            google::protobuf::MessageLite* header,
                            ExchangeBody* body) {
  // A copy of a ByteBuffer shares its slices; reading needs a mutable one.
  grpc::ByteBuffer buffer = bytes;
  std::vector<grpc::Slice> slices;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) {
    return MalformedFrame(*header, "it has no bytes");
  }
  ASSIGN_OR_RETURN(const LastField last,
                   FindLastField(*header, kBodies, buffer.Length(), &buffer));
  RETURN_IF_ERROR(ParseHeader(last, &buffer, header));
  body->method = static_cast<DataMethod>(last.number);
  body->message =
      last.number == 0 ? grpc::ByteBuffer() : Rest(slices, last.begin);
  return absl::OkStatus();
}

}  // namespace muster
