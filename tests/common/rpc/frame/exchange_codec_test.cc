#include "common/rpc/frame/exchange_codec.h"

#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "common/rpc/frame/frame_codec.h"
#include "gmock/gmock.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "proto/parameter_service.pb.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::string Flat(const grpc::ByteBuffer& bytes) {
  grpc::Slice slice;
  EXPECT_TRUE(bytes.DumpToSingleSlice(&slice).ok());
  return std::string(slice.begin(), slice.end());
}

// As many slices as there are bytes.
grpc::ByteBuffer Crumbs(const std::string& bytes) {
  std::vector<grpc::Slice> slices;
  for (const char byte : bytes) slices.emplace_back(&byte, 1);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

Frame<PushPart> SomePush() {
  Frame<PushPart> push;
  push.header.set_step(2);
  push.data = absl::Cord(std::string(1000, 'g'));
  return push;
}

grpc::ByteBuffer EncodePush(uint64_t call, const Frame<PushPart>& push) {
  ExchangeRequest header;
  header.set_call(call);
  header.set_timeout_ms(70000);
  return EncodeExchange(
      header, {DataMethod::kPush, EncodeFrame(push.header, push.data)});
}

TEST(ExchangeCodecTest, IsAnOrdinaryMessageOnTheWire) {
  ExchangeRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(Flat(EncodePush(5, SomePush()))));
  EXPECT_EQ(parsed.call(), 5);
  EXPECT_EQ(parsed.timeout_ms(), 70000);
  EXPECT_EQ(parsed.push().step(), 2);
  EXPECT_EQ(parsed.push().data(), std::string(1000, 'g'));
}

TEST(ExchangeCodecTest, ReadsWhatProtobufWrites) {
  ExchangeRequest request;
  request.set_call(5);
  request.mutable_push()->set_step(2);
  request.mutable_push()->set_data("1234");
  ExchangeRequest header;
  ExchangeBody body;
  ASSERT_THAT(
      DecodeExchange(Crumbs(request.SerializeAsString()), &header, &body),
      IsOk());
  EXPECT_EQ(header.call(), 5);
  EXPECT_EQ(body.method, DataMethod::kPush);
  const auto push = DecodeFrame<PushPart>(body.message);
  ASSERT_THAT(push, IsOk());
  EXPECT_EQ(push->header.step(), 2);
  EXPECT_EQ(push->data, "1234");
}

TEST(ExchangeCodecTest, SharesTheBodysMemory) {
  const std::string memory(100000, 'g');
  const grpc::Slice slice(memory.data(), memory.size(),
                          grpc::Slice::STATIC_SLICE);
  const grpc::ByteBuffer bytes = EncodeExchange(
      ExchangeRequest(), {DataMethod::kPush, grpc::ByteBuffer(&slice, 1)});
  ExchangeRequest header;
  ExchangeBody body;
  ASSERT_THAT(DecodeExchange(bytes, &header, &body), IsOk());
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(body.message.Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 1);
  EXPECT_EQ(slices[0].begin(), reinterpret_cast<const uint8_t*>(memory.data()));
}

TEST(ExchangeCodecTest, AnEmptyBodyIsOne) {
  ExchangeReply header;
  header.set_call(9);
  const grpc::ByteBuffer bytes =
      EncodeExchange(header, {DataMethod::kLoad, grpc::ByteBuffer()});
  ExchangeBody body;
  ASSERT_THAT(DecodeExchange(bytes, &header, &body), IsOk());
  EXPECT_EQ(body.method, DataMethod::kLoad);
  EXPECT_TRUE(body.message.Valid());
  EXPECT_EQ(body.message.Length(), 0);
}

TEST(ExchangeCodecTest, NoBodyIsTold) {
  ExchangeReply reply;
  reply.set_call(9);
  reply.mutable_error()->set_code(3);
  ExchangeReply header;
  ExchangeBody body;
  ASSERT_THAT(DecodeExchange(Crumbs(reply.SerializeAsString()), &header, &body),
              IsOk());
  EXPECT_EQ(header.error().code(), 3);
  EXPECT_FALSE(body.message.Valid());
}

TEST(ExchangeCodecTest, AMessageThatIsCutShortIsRefused) {
  const std::string whole = Flat(EncodePush(5, SomePush()));
  // Before it there are whole fields, and nothing says that one is missing.
  const size_t body = whole.find('\x6a');
  for (size_t size = body + 1; size < whole.size(); ++size) {
    ExchangeRequest header;
    ExchangeBody ignored;
    EXPECT_THAT(
        DecodeExchange(Crumbs(whole.substr(0, size)), &header, &ignored),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("malformed muster.ExchangeRequest")))
        << size;
  }
}

TEST(ExchangeCodecTest, TheBodyMustBeTheLastField) {
  const std::string whole = Flat(EncodePush(5, SomePush())) + "\x08\x01";
  ExchangeRequest header;
  ExchangeBody body;
  EXPECT_THAT(DecodeExchange(Crumbs(whole), &header, &body),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the last field")));
}

TEST(ExchangeCodecTest, ABufferThatWasNeverFilledIsRefused) {
  ExchangeRequest header;
  ExchangeBody body;
  EXPECT_THAT(DecodeExchange(grpc::ByteBuffer(), &header, &body),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
