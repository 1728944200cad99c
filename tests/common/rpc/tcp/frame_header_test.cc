#include "common/rpc/tcp/frame_header.h"

#include "absl/strings/escaping.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

FrameHeader HeaderOf(uint32_t fields_bytes, uint64_t data_bytes) {
  FrameHeader header;
  header.fields_bytes = fields_bytes;
  header.data_bytes = data_bytes;
  return header;
}

// The example of common/rpc/tcp/README.md.
TEST(FrameHeaderTest, LiesOnTheWireAsTheReadmeShowsIt) {
  FrameHeader header;
  header.call = 7;
  header.kind = 13;
  header.fields_bytes = 9;
  header.data_bytes = 8;
  header.timeout_ms = 1000;
  const std::string bytes = EncodeFrameHeader(header);
  EXPECT_EQ(absl::BytesToHexString(bytes.substr(0, 28)),
            "0700000000000000"
            "0d000000"
            "09000000"
            "0800000000000000"
            "e8030000");
  EXPECT_EQ(absl::BytesToHexString(bytes.substr(28)), "c8dbe805");
}

TEST(FrameHeaderTest, EveryFieldComesBack) {
  const FrameHeader header = {0x0102030405060708, 0xfffefdfc, kMaxHeaderBytes,
                              kMaxPartBytes, 0xf0e0d0c0};
  const auto decoded = DecodeFrameHeader(EncodeFrameHeader(header));
  ASSERT_THAT(decoded, IsOk());
  EXPECT_EQ(decoded->call, header.call);
  EXPECT_EQ(decoded->kind, header.kind);
  EXPECT_EQ(decoded->fields_bytes, header.fields_bytes);
  EXPECT_EQ(decoded->data_bytes, header.data_bytes);
  EXPECT_EQ(decoded->timeout_ms, header.timeout_ms);
}

TEST(FrameHeaderTest, AnyDamagedByte_IsRefused) {
  const std::string whole = EncodeFrameHeader({7, 3, 9, 8, 1000});
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_THAT(DecodeFrameHeader(damaged),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("damaged, or is none")))
          << "byte " << i << ", bit " << bit;
    }
  }
  EXPECT_THAT(DecodeFrameHeader(std::string(kFrameHeaderBytes, '\0')),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FrameHeaderTest, LengthsOverTheBounds_AreRefused) {
  const uint32_t fields = kMaxHeaderBytes;
  const uint64_t data = kMaxPartBytes;
  EXPECT_THAT(DecodeFrameHeader(EncodeFrameHeader(HeaderOf(fields, data))),
              IsOk());
  for (const FrameHeader& header :
       {HeaderOf(fields + 1, 0), HeaderOf(0, data + 1),
        HeaderOf(0, uint64_t{1} << 40), HeaderOf(UINT32_MAX, 0),
        HeaderOf(0, UINT64_MAX), HeaderOf(0, uint64_t{1} << 63)}) {
    EXPECT_THAT(
        DecodeFrameHeader(EncodeFrameHeader(header)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most")));
  }
}

}  // namespace
}  // namespace muster
