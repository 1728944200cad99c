#include "common/rpc/frame/frame_codec.h"

#include <dlfcn.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/frame/last_field.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "proto/parameter_service.pb.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

PushPart MakeHeader() {
  PushPart header;
  header.mutable_sender()->mutable_task()->set_job("worker");
  header.mutable_sender()->mutable_task()->set_index(1);
  header.mutable_sender()->set_incarnation(77);
  header.set_step(12);
  header.set_parts(3);
  TensorSlice* slice = header.add_slices();
  slice->set_tensor("conv1/weights");
  slice->set_length(800);
  return header;
}

std::string MakeBytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 9);
  return bytes;
}

std::string Flatten(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// The bytes in slices of `piece` bytes, as a network might deliver them.
grpc::ByteBuffer Deliver(absl::string_view bytes, size_t piece) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < bytes.size(); i += piece) {
    const absl::string_view part = bytes.substr(i, piece);
    slices.emplace_back(part.data(), part.size());
  }
  if (slices.empty()) slices.emplace_back();
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string SerializeWhole(const PushPart& header, const std::string& data) {
  PushPart whole = header;
  whole.set_data(data);
  return whole.SerializeAsString();
}

TEST(FrameCodecTest, WritesTheBytesThatProtobufWrites) {
  for (const size_t size : {0, 1, 15, 127, 128, 511, 512, 3200, 1 << 20}) {
    const std::string data = MakeBytes(size);
    EXPECT_EQ(Flatten(EncodeFrame(MakeHeader(), absl::Cord(data))),
              SerializeWhole(MakeHeader(), data))
        << size;
  }
}

TEST(FrameCodecTest, WritesTheExampleOfTheReadme) {
  PushPart header;
  header.set_step(2);
  TensorSlice* slice = header.add_slices();
  slice->set_tensor("b");
  slice->set_length(2);
  const std::string data("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);
  EXPECT_EQ(
      Flatten(EncodeFrame(header, absl::Cord(data))),
      std::string("\x18\x02\x3a\x05\x12\x01\x62\x20\x02\x7a\x08", 11) + data);
}

TEST(FrameCodecTest, ReadsTheBytesThatProtobufWrites) {
  for (const size_t size : {0, 1, 15, 127, 128, 511, 512, 3200, 70000}) {
    const std::string data = MakeBytes(size);
    const std::string whole = SerializeWhole(MakeHeader(), data);
    for (const size_t piece : {1, 7, 600, 8192, 1 << 20}) {
      const absl::StatusOr<Frame<PushPart>> frame =
          DecodeFrame<PushPart>(Deliver(whole, piece));
      ASSERT_THAT(frame, IsOk());
      EXPECT_EQ(frame->header.SerializeAsString(),
                MakeHeader().SerializeAsString());
      EXPECT_EQ(std::string(frame->data), data);
    }
  }
}

TEST(FrameCodecTest, SendsTheTensorsOwnMemoryAndKeepsItAlive) {
  const std::string tensor = MakeBytes(100000);
  bool released = false;
  {
    absl::Cord data =
        absl::MakeCordFromExternal(tensor, [&released] { released = true; });
    grpc::ByteBuffer buffer = EncodeFrame(MakeHeader(), data);
    data.Clear();
    EXPECT_FALSE(released);
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(buffer.Dump(&slices).ok());
    ASSERT_EQ(slices.size(), 2);
    EXPECT_EQ(reinterpret_cast<const char*>(slices[1].begin()), tensor.data());
    buffer.Clear();
    EXPECT_FALSE(released);
  }
  EXPECT_TRUE(released);
}

TEST(FrameCodecTest, UsesTheReceivedSlicesWhereTheyLie) {
  const std::string whole = SerializeWhole(MakeHeader(), MakeBytes(100000));
  const grpc::Slice slice(whole.data(), whole.size(),
                          grpc::Slice::STATIC_SLICE);
  const absl::StatusOr<Frame<PushPart>> frame =
      DecodeFrame<PushPart>(grpc::ByteBuffer(&slice, 1));
  ASSERT_THAT(frame, IsOk());
  ASSERT_TRUE(frame->data.TryFlat().has_value());
  EXPECT_EQ(frame->data.TryFlat()->data(),
            whole.data() + whole.size() - 100000);
}

TEST(FrameCodecTest, DataOutlivesTheBuffer) {
  const std::string bytes = MakeBytes(100000);
  grpc::ByteBuffer buffer = EncodeFrame(MakeHeader(), absl::Cord(bytes));
  absl::StatusOr<Frame<PushPart>> frame = DecodeFrame<PushPart>(buffer);
  buffer.Clear();
  ASSERT_THAT(frame, IsOk());
  EXPECT_EQ(std::string(frame->data), bytes);
}

// Where gRPC keeps what it needs on a thread to look after its quota; null
// outside its calls.
bool IsInACallOfGrpc() {
  void* const* const context = static_cast<void* const*>(
      dlsym(RTLD_DEFAULT, "_ZN9grpc_core7ExecCtx9exec_ctx_E"));
  EXPECT_NE(context, nullptr) << "another gRPC: find its ExecCtx::exec_ctx_";
  return context != nullptr && *context != nullptr;
}

// Whoever drops it last: received memory goes back to gRPC's quota.
TEST(FrameCodecTest, ReceivedMemoryEndsInACallOfGrpc) {
  static int ended;
  ended = 0;
  const std::string header = MakeHeader().SerializeAsString();
  std::string first = MakeBytes(600);
  std::string second = MakeBytes(700);
  const auto end = [](void*) {
    EXPECT_TRUE(IsInACallOfGrpc());
    ++ended;
  };
  EXPECT_FALSE(IsInACallOfGrpc());
  absl::Cord data;
  {
    const std::vector<grpc::Slice> slices = {
        grpc::Slice(header + FieldPrefix(15, first.size() + second.size())),
        grpc::Slice(first.data(), first.size(), end, &first),
        grpc::Slice(second.data(), second.size(), end, &second)};
    const grpc::ByteBuffer buffer(slices.data(), slices.size());
    auto frame = DecodeFrame<PushPart>(buffer);
    ASSERT_THAT(frame, IsOk());
    data = std::move(frame->data);
  }
  EXPECT_EQ(data, first + second);
  data = data.Subcord(first.size(), second.size());
  EXPECT_EQ(ended, 0) << "a piece holds the whole";
  data.Clear();
  EXPECT_EQ(ended, 2);
}

TEST(FrameCodecTest, RefusesAFieldAfterTheData) {
  PushPart late;
  late.set_step(1);
  const std::string bytes =
      SerializeWhole(MakeHeader(), "abc") + late.SerializeAsString();
  EXPECT_THAT(DecodeFrame<PushPart>(Deliver(bytes, 4096)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("muster.PushPart frame: its data should be 3 "
                                 "bytes and the last field, but 5")));
}

TEST(FrameCodecTest, RefusesTwelveBytesThatPromiseGigabytes) {
  // Field 1 empty twice, then field 15 of 912,345,678 floats.
  const std::string bytes("\x0a\x00\x0a\x00\x7a\xb8\xd8\x8a\x98\x0d\x00\x00",
                          12);
  EXPECT_THAT(DecodeFrame<PushPart>(Deliver(bytes, 4096)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("bytes are left")));
}

// Its sender may send it again.
TEST(FrameCodecTest, SaysThatWhatIsNoFrameWasDamaged) {
  const std::string whole = SerializeWhole(MakeHeader(), "abc");
  for (const std::string& bytes : {std::string("\xff"), whole + "\x7a",
                                   whole.substr(0, whole.size() - 1)}) {
    EXPECT_TRUE(
        IsDamaged(DecodeFrame<PushPart>(Deliver(bytes, 4096)).status()));
  }
}

TEST(FrameCodecTest, RefusesAHeaderOverItsLimit) {
  PushPart header = MakeHeader();
  header.set_codec(std::string(kMaxHeaderBytes, 'x'));
  EXPECT_THAT(
      DecodeFrame<PushPart>(Deliver(SerializeWhole(header, "abc"), 4096)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("65536")));
}

TEST(FrameCodecTest, RefusesTextThatIsNotUtf8) {
  const std::string codec("\x42\x01\xff", 3);  // field 8, one byte 0xff
  EXPECT_THAT(DecodeFrame<PushPart>(Deliver(codec, 4096)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FrameCodecTest, RefusesABufferWithoutBytes) {
  EXPECT_THAT(DecodeFrame<PushPart>(grpc::ByteBuffer()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FrameCodecTest, EveryTruncationIsAnErrorOrAWholeMessage) {
  const std::string whole = SerializeWhole(MakeHeader(), MakeBytes(700));
  int errors = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const absl::StatusOr<Frame<PushPart>> frame =
        DecodeFrame<PushPart>(Deliver(whole.substr(0, size), 64));
    if (frame.ok()) {
      // A cut between two fields is a shorter message; its data is gone.
      EXPECT_TRUE(frame->data.empty()) << size;
    } else {
      ++errors;
    }
  }
  EXPECT_GT(errors, 700);
}

TEST(FrameCodecTest, FlippedBytesNeverCrash) {
  const uint32_t seed = 20260101;
  std::mt19937 random(seed);
  const std::string whole = SerializeWhole(MakeHeader(), MakeBytes(600));
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = whole;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) {
      // The first 80 bytes hold the header and the length of the data.
      bytes[random() % 80] = static_cast<char>(random());
    }
    const absl::StatusOr<Frame<PushPart>> frame =
        DecodeFrame<PushPart>(Deliver(bytes, 1 + random() % 100));
    PushPart generated;
    if (frame.ok()) {
      EXPECT_TRUE(generated.ParseFromString(bytes)) << "seed " << seed;
      EXPECT_EQ(generated.data(), std::string(frame->data));
    }
  }
}

}  // namespace
}  // namespace muster
