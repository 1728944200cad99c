// Every verb in verbs.bzl is registered, and nothing else.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

TEST(VerbsTest, AreRegisteredUnderTheNamesOfTheirFiles) {
  std::vector<std::string> words;
  for (std::string name : VerbRegistry::Names()) {
    std::replace(name.begin(), name.end(), ' ', '_');
    words.push_back(name);
  }
  const std::vector<std::string> files = absl::StrSplit(VERB_LIST, ',');
  EXPECT_THAT(words, testing::UnorderedElementsAreArray(files));
  EXPECT_THAT(VerbRegistry::Validate(), IsOk());
}

TEST(VerbsTest, EachSaysWhatItDoes) {
  for (const std::string& name : VerbRegistry::Names()) {
    std::vector<std::string> args = absl::StrSplit(name, ' ');
    args.push_back("--help");
    const VerbResult result = RunVerb(args, nullptr);
    EXPECT_EQ(result.exit_code, kExitDone) << name;
    EXPECT_THAT(result.out, testing::StartsWith("musterctl " + name));
  }
}

}  // namespace
}  // namespace muster
