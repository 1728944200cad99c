#include "common/config/namespace_name.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(NamespaceNameTest, TakesLettersDigitsAndAFewSigns) {
  for (const char* name : {"", "a", "sweep/lr-0.1_B", "..", "0"}) {
    EXPECT_THAT(CheckNamespaceName("x", name), IsOk()) << name;
  }
  EXPECT_THAT(CheckNamespaceName("x", std::string(kMaxNamespaceName, 'a')),
              IsOk());
}

TEST(NamespaceNameTest, NamesWhatItRefuses) {
  for (const std::string& name :
       {std::string("a b"), std::string("\x1b[2J"), std::string("\0", 1),
        std::string("\xc3\xa4"), std::string(kMaxNamespaceName + 1, 'a')}) {
    EXPECT_THAT(CheckNamespaceName("--namespace", name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("--namespace: namespace '"),
                               HasSubstr("at most 128"))));
  }
  EXPECT_EQ(QuotedNamespace("a\n"), "namespace 'a\\n'");
}

}  // namespace
}  // namespace muster
