#include "common/base/status_macros.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return value / 2;
}

absl::StatusOr<int> Quarter(int value) {
  ASSIGN_OR_RETURN(const int half, Half(value));
  int quarter = 0;
  ASSIGN_OR_RETURN(quarter, Half(half));
  return quarter;
}

absl::Status CheckHalf(int value, int* calls) {
  RETURN_IF_ERROR(Half(value).status());
  ++*calls;
  return absl::OkStatus();
}

TEST(StatusMacrosTest, AssignOrReturnAssignsOrReturns) {
  EXPECT_THAT(Quarter(12), IsOkAndHolds(3));
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
  EXPECT_THAT(Quarter(5), StatusIs(absl::StatusCode::kInvalidArgument, "odd"));
}

TEST(StatusMacrosTest, AssignOrReturnMovesTheValue) {
  const auto twice = [](std::unique_ptr<int> value) -> absl::StatusOr<int> {
    absl::StatusOr<std::unique_ptr<int>> owner = std::move(value);
    ASSIGN_OR_RETURN(const std::unique_ptr<int> moved, std::move(owner));
    return *moved * 2;
  };
  EXPECT_THAT(twice(std::make_unique<int>(4)), IsOkAndHolds(8));
}

TEST(StatusMacrosTest, ReturnIfErrorGoesOnOnlyWhenOk) {
  int calls = 0;
  EXPECT_THAT(CheckHalf(2, &calls), IsOk());
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(CheckHalf(3, &calls),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(calls, 1);
}

TEST(StatusMacrosTest, AnnotateKeepsTheCode) {
  EXPECT_THAT(Annotate(absl::OkStatus(), "reading x"), IsOk());
  EXPECT_THAT(Annotate(absl::NotFoundError("gone"), "reading x"),
              StatusIs(absl::StatusCode::kNotFound, "reading x: gone"));
}

TEST(StatusMacrosTest, AnnotateKeepsPayloads) {
  absl::Status status = absl::NotFoundError("gone");
  status.SetPayload("muster/x", absl::Cord("1"));
  EXPECT_EQ(Annotate(status, "reading x").GetPayload("muster/x"), "1");
}

}  // namespace
}  // namespace muster
