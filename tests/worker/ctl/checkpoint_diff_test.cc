#include <cstdio>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/ctl/verb_fixture.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class CheckpointDiffTest : public VerbFixture {
 protected:
  VerbResult Diff(const std::string& path, const std::string& other) {
    return Ctl({"checkpoint", "diff", path, other});
  }
};

TEST_F(CheckpointDiffTest, FindsNoDifferenceBetweenEqualTensors) {
  Save(30, 1);
  const VerbResult result = Diff(Path(10), Path(30));
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out, HasSubstr("0 of 9 tensors differ"));
}

TEST_F(CheckpointDiffTest, SaysWhichTensorsDifferAndHowFar) {
  const VerbResult result = Diff(Path(10), Path(20));
  EXPECT_EQ(result.exit_code, kExitFailed) << result.error;
  EXPECT_THAT(result.out,
              AllOf(ContainsRegex("dense/weights: 6 of 6 elements differ, the "
                                  "first is 0; largest difference "),
                    HasSubstr("9 of 9 tensors differ")));
}

TEST_F(CheckpointDiffTest, ComparesOtherShapesByName) {
  ASSERT_THAT(SaveExample(&fs_, "train", 30), IsOk());
  const VerbResult result = Diff(Path(10), Path(30));
  EXPECT_EQ(result.exit_code, kExitFailed);
  EXPECT_THAT(result.out,
              HasSubstr("conv/weights: [2500] of float32 and [65537]"));
}

TEST_F(CheckpointDiffTest, CountsTensorsThatOnlyOneHas) {
  ASSERT_THAT(SaveExample(&fs_, "train", 30), IsOk());
  const std::string out = Diff(Path(10), Path(30)).out;
  EXPECT_THAT(out, ContainsRegex("only in train/ckpt-0+10"));
  EXPECT_THAT(out, ContainsRegex("only in train/ckpt-0+30"));
  int differ = 0;
  int tensors = 0;
  const std::string counts = out.substr(out.rfind("): ") + 3);
  ASSERT_EQ(std::sscanf(counts.c_str(), "%d of %d", &differ, &tensors), 2);
  EXPECT_LE(differ, tensors);
}

TEST_F(CheckpointDiffTest, NamesTheDamageOfTheOther) {
  Damage(20, kParametersFile);
  const VerbResult result = Diff(Path(10), Path(20));
  EXPECT_EQ(result.exit_code, kExitBadCheckpoint);
  EXPECT_THAT(result.error, HasSubstr("is damaged"));
}

}  // namespace
}  // namespace muster
