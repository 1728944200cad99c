// GoogleTest matchers for absl::Status and absl::StatusOr:
//
//   EXPECT_THAT(Save(dir), IsOk());
//   EXPECT_THAT(Parse(text), IsOkAndHolds(Shape({2, 3})));
//   EXPECT_THAT(Parse("x"), StatusIs(absl::StatusCode::kInvalidArgument,
//                                    HasSubstr("'x'")));
#ifndef TESTS_TESTING_STATUS_MATCHERS_H_
#define TESTS_TESTING_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}

template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

// Matches an OK Status, or a StatusOr with a value.
MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << "whose status is " << StatusOf(arg);
  return StatusOf(arg).ok();
}

// Matches a Status or StatusOr with this code and a message that matches (a
// matcher, or a string for equality).
MATCHER_P2(StatusIs, code, message,
           absl::StrCat(negation ? "has not" : "has", " code ",
                        absl::StatusCodeToString(code), " and a message that ",
                        testing::DescribeMatcher<std::string>(message))) {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "whose status is " << status;
  return status.code() == code &&
         testing::Value(std::string(status.message()), message);
}

// Matches a Status or StatusOr with this code.
MATCHER_P(StatusIs, code,
          absl::StrCat(negation ? "has not" : "has", " code ",
                       absl::StatusCodeToString(code))) {
  *result_listener << "whose status is " << StatusOf(arg);
  return StatusOf(arg).code() == code;
}

// Matches a StatusOr with a value that matches (a matcher, or a value for
// equality).
MATCHER_P(IsOkAndHolds, value,
          negation ? "is not OK, or does not hold it" : "is OK and holds it") {
  if (!arg.ok()) {
    *result_listener << "whose status is " << arg.status();
    return false;
  }
  return testing::ExplainMatchResult(value, *arg, result_listener);
}

}  // namespace muster

#endif  // TESTS_TESTING_STATUS_MATCHERS_H_
