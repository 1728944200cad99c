#include "common/config/text_format.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/cluster.pb.h"
#include "proto/training.pb.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TextFormatTest, ParsesText) {
  TrainingSpec spec;
  EXPECT_THAT(ParseTextProto("# a comment\nstop { steps: 3 }", "m", &spec),
              IsOk());
  EXPECT_EQ(spec.stop().steps(), 3);
}

TEST(TextFormatTest, NamesThePlaceAndTheNearestField) {
  struct Case {
    const char* text;
    const char* wanted;
  };
  const Case kCases[] = {
      {"stop {\n  step: 3 }",
       "m:2:7: unknown StopSpec field 'step'; did you mean 'steps'? known: "
       "steps, epochs"},
      {"optimzer { }",
       "unknown TrainingSpec field 'optimzer'; did you mean "
       "'optimizer'?"},
      {"seed: 1.5", "m:1:7: "},
      {"seed: 1 seed: 2", "m:1:"},
      {"stop {",
       "m:1:7: Expected identifier, found the end of the text; is a '}' "
       "missing?"},
      {"input { dir: ", "found the end of the text; is a '}' missing?"},
      {"model { input_shape: [1, ",
       "found the end of the text; is a '}' missing?"},
      {"stop { steps: 3 } }", "m:1:19: "},
      {"seed: \"\x1b\"", "m:1:7: "},
  };
  for (const Case& c : kCases) {
    TrainingSpec spec;
    EXPECT_THAT(
        ParseTextProto(c.text, "m", &spec),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.wanted)))
        << c.text;
  }
}

TEST(TextFormatTest, RefusesARepeatedMapKey) {
  ClusterDef def;
  EXPECT_THAT(ParseTextProto("job { name: 'ps' tasks { key: 3 value: 'a' } }\n"
                             "job { tasks { key: 7 value: 'a' }\n"
                             "      tasks { key: 7 value: 'b' } }",
                             "c", &def),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("c:3:7: 'tasks' has the key 7 twice")));
  EXPECT_THAT(ParseTextProto("job { tasks { key: 7 value: 'a' } }\n"
                             "job { tasks { key: 7 value: 'b' } }",
                             "c", &def),
              IsOk());
}

TEST(TextFormatTest, ErrorsHoldNoControlCharacters) {
  TrainingSpec spec;
  const absl::Status status = ParseTextProto("seed: \x1b\x07", "m", &spec);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\x1b")));
}

TEST(TextFormatTest, ListsFieldNames) {
  EXPECT_THAT(
      FieldNames(*StopSpec::descriptor()),
      ElementsAre("steps", "epochs", "seconds", "target_accuracy", "plateau"));
}

}  // namespace
}  // namespace muster
