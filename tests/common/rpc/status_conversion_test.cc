#include "common/rpc/status_conversion.h"

#include <string>

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

}  // namespace
}  // namespace muster
