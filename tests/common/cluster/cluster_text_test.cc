#include "common/cluster/cluster_text.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(ClusterTextTest, ReadsWhatTensorFlowPrints) {
  const auto spec = ParseClusterText(
      "job {\n  name: \"ps\"\n  tasks {\n    key: 0\n"
      "    value: \"localhost:2222\"\n  }\n}\n"
      "job {\n  name: \"worker\"\n  tasks {\n    key: 0\n"
      "    value: \"localhost:2223\"\n  }\n}\n",
      "c.textproto");
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->Summary(), "ps 1, worker 1");
}

TEST(ClusterTextTest, NamesThePlaceOfAMistake) {
  struct Case {
    const char* text;
    const char* wanted;
  };
  const Case kCases[] = {
      {"job {\n  nam: 'ps'\n}",
       "c:2:6: unknown JobDef field 'nam'; did you "
       "mean 'name'?"},
      {"job {", "c:1:6: "},
      {"job { name: 'ps' tasks { key: 0 value: 'a:1' }\n"
       " tasks { key: 0 value: 'b:1' } }",
       "c:2:2: 'tasks' has the key 0 twice"},
      {"job { name: 'ps' tasks { key: 0 value: 'a' } }", "c: /job:ps/task:0"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(
        ParseClusterText(c.text, "c"),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.wanted)))
        << c.text;
  }
}

}  // namespace
}  // namespace muster
