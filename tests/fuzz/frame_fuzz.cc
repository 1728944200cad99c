// Messages to a ps, as they come over gRPC: frames of an Exchange stream, and
// calls without tensors. The input is a list of them: the way, the length (two
// bytes), the bytes.
#include <algorithm>
#include <string>
#include <vector>

#include "common/rpc/frame/byte_buffer.h"
#include "common/rpc/frame/exchange_codec.h"
#include "ps_server/service/data_call.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/ready_shard.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"

namespace muster {
namespace {

// In slices of `slice_bytes`; 0: in one.
grpc::ByteBuffer Sliced(absl::string_view bytes, size_t slice_bytes) {
  std::vector<grpc::Slice> slices;
  while (!bytes.empty()) {
    const absl::string_view slice =
        bytes.substr(0, slice_bytes == 0 ? bytes.size() : slice_bytes);
    slices.emplace_back(slice.data(), slice.size());
    bytes.remove_prefix(slice.size());
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Flat(const grpc::ByteBuffer& buffer) {
  return buffer.Valid() ? Wanted(BytesOf(buffer), "the bytes") : "";
}

// A frame that is read is written as one that is read as the same.
void TryAgain(const ExchangeRequest& header, const ExchangeBody& body) {
  ExchangeRequest header_again;
  ExchangeBody body_again;
  Want(DecodeExchange(EncodeExchange(header, body), &header_again, &body_again)
           .ok(),
       "a frame that was written");
  Want(header_again.SerializeAsString() == header.SerializeAsString() &&
           body_again.method == body.method &&
           Flat(body_again.message) == Flat(body.message),
       "the same frame");
}

void TryExchange(const grpc::ByteBuffer& bytes, const DataCallTarget& target) {
  ExchangeRequest header;
  ExchangeBody body;
  if (!DecodeExchange(bytes, &header, &body).ok() || !body.message.Valid()) {
    return;
  }
  TryAgain(header, body);
  int answers = 0;
  PassDataCall(target, body, CallCheck(), absl::InfiniteFuture(),
               [&answers](const auto&) { ++answers; });
  Want(answers == 1, "one answer");
}

// Takes the first message away and sends it.
void TryMessage(const DataCallTarget& target, ShardServer* shard,
                absl::string_view* input) {
  const uint8_t way = TakeByte(input);
  const size_t low = TakeByte(input);
  const size_t size = low | size_t{TakeByte(input)} << 8;
  const absl::string_view bytes = input->substr(0, size);
  input->remove_prefix(bytes.size());
  const std::vector<AnyMethod> methods = shard->calls().methods();
  const size_t call = way % (methods.size() + 1);
  if (call == 0) return TryExchange(Sliced(bytes, way >> 4), target);
  shard->CallBytes(methods[call - 1], std::string(bytes),
                   absl::InfiniteFuture(), [](const auto&) {});
}

}  // namespace

void TryInput(absl::string_view input) {
  ReadyShard shard;
  BufferPool values;
  while (!input.empty()) {
    TryMessage({&shard.server(), &values}, &shard.server(), &input);
  }
  Wanted(AwaitCall(shard.server(), kStateCall, StateRequest(),
                   absl::InfiniteFuture()),
         "a shard that answers");
}

}  // namespace muster
