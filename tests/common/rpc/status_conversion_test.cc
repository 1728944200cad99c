#include "common/rpc/status_conversion.h"

#include <string>

#include "common/rpc/error_reason.h"
#include "common/rpc/retry_after.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(StatusConversionTest, EveryCodeSurvivesTheRoundTrip) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    EXPECT_EQ(ToAbslStatus(ToGrpcStatus(status)), status);
  }
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(ToAbslStatus(grpc::Status::OK).ok());
}

TEST(StatusConversionTest, CutsAMessageThatNoTrailerHolds) {
  const grpc::Status status =
      ToGrpcStatus(absl::InternalError(std::string(100000, 'x')));
  EXPECT_LT(status.error_message().size(), 2100);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
}

TEST(StatusConversionTest, AHintToTryAgainSurvivesTheRoundTrip) {
  absl::Status status = absl::ResourceExhaustedError("no room");
  SetRetryAfter(absl::Milliseconds(1250), &status);
  const absl::Status back = ToAbslStatus(ToGrpcStatus(status));
  EXPECT_EQ(back, status);
  EXPECT_EQ(RetryAfter(back), absl::Milliseconds(1250));
  EXPECT_EQ(RetryAfter(absl::ResourceExhaustedError("no room")), std::nullopt);
}

TEST(StatusConversionTest, BytesCarryTheSame) {
  absl::Status status = absl::ResourceExhaustedError("no \xff room");
  SetRetryAfter(absl::Milliseconds(7), &status);
  EXPECT_EQ(StatusFromDetails(StatusToDetails(status)), status);
  EXPECT_EQ(StatusFromBytes(StatusToBytes(status)), status);
  EXPECT_LT(StatusToBytes(absl::InternalError(std::string(100000, 'x'))).size(),
            2100);
}

TEST(StatusConversionTest, BytesThatAreNoErrorAreOne) {
  for (const std::string& bytes :
       {std::string(), std::string("\xff"), std::string(100000, '\0'),
        std::string("\x08\x00"), std::string("\x08\x63")}) {
    EXPECT_EQ(StatusFromBytes(bytes).code(), absl::StatusCode::kInternal);
    EXPECT_TRUE(IsDamaged(StatusFromBytes(bytes)));
  }
}

TEST(StatusConversionTest, PassesOverDetailsThatAreNoHint) {
  for (const char* details : {"\xff\xff\xff", "\x1a\x02\x0a\x00", "x"}) {
    const absl::Status status = ToAbslStatus(
        grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "no", details));
    EXPECT_EQ(status, absl::ResourceExhaustedError("no"));
  }
}

TEST(StatusConversionTest, APeersHintIsHeldWithinAMinute) {
  absl::Status status = absl::ResourceExhaustedError("no room");
  SetRetryAfter(absl::Hours(1000), &status);
  EXPECT_EQ(RetryAfter(ToAbslStatus(ToGrpcStatus(status))), absl::Minutes(1));
  SetRetryAfter(absl::Seconds(-5), &status);
  EXPECT_EQ(RetryAfter(ToAbslStatus(ToGrpcStatus(status))),
            absl::ZeroDuration());
}

}  // namespace
}  // namespace muster
