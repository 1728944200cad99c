#include "common/rpc/training_text.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(TrainingTextTest, JoinedText_IsSplitIntoWhatItWas) {
  for (const absl::string_view kind : {kLayersKind, kProgramKind}) {
    const TrainingText text = SplitTrainingText(
        JoinTrainingText({std::string(kind), "seed: 1\n", "rows: 2\n"}));
    EXPECT_EQ(text.kind, kind);
    EXPECT_EQ(text.own, "seed: 1\n");
    EXPECT_EQ(text.shared, "rows: 2\n");
  }
}

TEST(TrainingTextTest, TextThatSaysNoKind_IsAllShared) {
  for (const std::string& joined :
       {std::string("seed: 1\n"), JoinTrainingText({"other", "a", "b"})}) {
    const TrainingText text = SplitTrainingText(joined);
    EXPECT_EQ(text.kind, "");
    EXPECT_EQ(text.own, "");
    EXPECT_EQ(text.shared, joined);
  }
}

}  // namespace
}  // namespace muster
