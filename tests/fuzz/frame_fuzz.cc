// Messages to a ps, as they come over gRPC: frames, and calls without tensors.
// The input is a list of them: the way, the length (two bytes), the bytes.
#include <iterator>
#include <string>
#include <vector>

#include "common/rpc/frame/byte_buffer.h"
#include "common/rpc/frame/frame_codec.h"
#include "ps_server/service/data_call.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/ready_shard.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"

namespace muster {
namespace {

constexpr DataMethod kDataMethods[] = {
    DataMethod::kLoad, DataMethod::kPull, DataMethod::kPush,
    DataMethod::kReadSnapshot, DataMethod::kPullRows};

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

// A frame that is read is written as one that is read as the same.
void TryAgain(const grpc::ByteBuffer& bytes) {
  const absl::StatusOr<Frame<PushPart>> frame = DecodeFrame<PushPart>(bytes);
  if (!frame.ok()) return;
  const auto again =
      Wanted(DecodeFrame<PushPart>(EncodeFrame(frame->header, frame->data)),
             "a frame that was written");
  Want(again.header.SerializeAsString() == frame->header.SerializeAsString() &&
           again.data == frame->data,
       "the same frame");
}

void TryDataCall(const DataCallTarget& target, DataMethod method,
                 const grpc::ByteBuffer& bytes) {
  TryAgain(bytes);
  int answers = 0;
  PassDataCall(target, method, bytes, CallCheck(), absl::InfiniteFuture(),
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
  const size_t call = way % (methods.size() + std::size(kDataMethods));
  if (call >= methods.size()) {
    return TryDataCall(target, kDataMethods[call - methods.size()],
                       Sliced(bytes, way >> 4));
  }
  shard->CallBytes(methods[call], std::string(bytes), absl::InfiniteFuture(),
                   [](const auto&) {});
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
