#include "common/rpc/error_reason.h"

#include <string>

#include "absl/strings/cord.h"
#include "common/rpc/status_conversion.h"
#include "gtest/gtest.h"
#include "proto/status.pb.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

constexpr ErrorReason kAll[] = {
    ErrorReason::kFenced,           ErrorReason::kReplaced,
    ErrorReason::kNotRegistered,    ErrorReason::kDamaged,
    ErrorReason::kCertificateEnded, ErrorReason::kFile};

absl::Status WithErrorInfo(const std::string& bytes) {
  absl::Status status = absl::AbortedError("no");
  status.SetPayload(kErrorInfoUrl, absl::Cord(bytes));
  return status;
}

TEST(ErrorReasonTest, EveryReasonSurvivesEveryLink) {
  for (const ErrorReason reason : kAll) {
    const absl::Status status = WithReason(absl::NotFoundError("x"), reason);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, "x"));
    EXPECT_EQ(ReasonOf(status), reason);
    EXPECT_EQ(ToAbslStatus(ToGrpcStatus(status)), status);
    EXPECT_EQ(StatusFromDetails(StatusToDetails(status)), status);
    EXPECT_EQ(StatusFromBytes(StatusToBytes(status)), status);
  }
}

TEST(ErrorReasonTest, AnotherReasonTakesThePlaceOfTheFirst) {
  EXPECT_EQ(ReasonOf(WithReason(FencedError("x"), ErrorReason::kReplaced)),
            ErrorReason::kReplaced);
}

TEST(ErrorReasonTest, WithoutAReasonThereIsNone) {
  EXPECT_EQ(ReasonOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(ReasonOf(absl::FailedPreconditionError("fenced: x")), std::nullopt);
  EXPECT_TRUE(WithReason(absl::OkStatus(), ErrorReason::kFenced).ok());
}

TEST(ErrorReasonTest, AStrangersReasonIsNone) {
  ErrorInfo info;
  info.set_reason("FENCED");
  info.set_domain("googleapis.com");
  EXPECT_EQ(ReasonOf(WithErrorInfo(info.SerializeAsString())), std::nullopt);
  info.set_domain("muster");
  EXPECT_EQ(ReasonOf(WithErrorInfo(info.SerializeAsString())),
            ErrorReason::kFenced);
  info.set_reason("UNHEARD_OF");
  EXPECT_EQ(ReasonOf(WithErrorInfo(info.SerializeAsString())), std::nullopt);
  EXPECT_EQ(ReasonOf(WithErrorInfo("\xff")), std::nullopt);
}

TEST(ErrorReasonTest, AFenceSaysSoToPeopleToo) {
  const absl::Status fenced = FencedError("epoch 2");
  EXPECT_THAT(fenced, StatusIs(absl::StatusCode::kFailedPrecondition,
                               "fenced: epoch 2"));
  EXPECT_EQ(ReasonOf(fenced), ErrorReason::kFenced);
}

TEST(ErrorReasonTest, APeersTroubleMayPassAndAFilesDoesNot) {
  const absl::Status full = absl::ResourceExhaustedError("no room");
  EXPECT_TRUE(IsTransient(full));
  EXPECT_TRUE(IsTransient(absl::UnavailableError("gone")));
  EXPECT_FALSE(IsTransient(FencedError("x")));
  EXPECT_FALSE(IsTransient(absl::OkStatus()));
  EXPECT_FALSE(IsTransient(WithReason(full, ErrorReason::kFile)));
}

}  // namespace
}  // namespace muster
