#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/input/image/image_folder.h"

namespace muster {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(OtherEntriesTest, NamesTheOnlyOne) {
  OtherEntries others;
  others.Add("cats/a.gif", ".gif");
  EXPECT_EQ(others.ToString(),
            "1 entry that is not read (1 .gif): 'cats/a.gif'");
}

TEST(OtherEntriesTest, StaysShortHoweverManyKindsThereAre) {
  OtherEntries others;
  for (int i = 0; i < 1000; ++i) {
    others.Add(absl::StrCat("a\n.", 100 + i), absl::StrCat(".", 100 + i));
  }
  EXPECT_EQ(others.count(), 1000);
  const std::string text = others.ToString();
  EXPECT_THAT(text, HasSubstr("1 .107, 992 of further kinds"));
  EXPECT_THAT(text, HasSubstr("a\\n.100"));
  EXPECT_THAT(text, EndsWith("and 997 more"));
  EXPECT_LT(text.size(), 300);
}

}  // namespace
}  // namespace muster
