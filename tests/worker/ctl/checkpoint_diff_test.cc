#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/table_fixture.h"
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
  const std::vector<TensorDef> others = {MakeTensor("head/weights", {5})};
  ASSERT_THAT(SaveExample(&fs_, "train", 30, Retention(), 1, 0, others),
              IsOk());
  const std::string out = Diff(Path(10), Path(30)).out;
  EXPECT_THAT(out, HasSubstr("bn/mean: only in train/ckpt-000000000010"));
  EXPECT_THAT(out, HasSubstr("head/weights: only in train/ckpt-000000000030"));
  EXPECT_THAT(out, HasSubstr("13 of 13 tensors differ"));
}

TEST_F(CheckpointDiffTest, Tables_AreComparedBesideTensors) {
  const ExampleTable user = MakeExampleTable("user", 2, {0, 1, -1});
  const ExampleTable item = MakeExampleTable("item", 2, {7});
  ASSERT_THAT(SaveTablesExample(&fs_, "train", 30, {user, item}), IsOk());
  ASSERT_THAT(SaveTablesExample(&fs_, "train", 40, {user}, 2), IsOk());
  const VerbResult result = Diff(Path(30), Path(40));
  EXPECT_EQ(result.exit_code, kExitFailed) << result.error;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("item: table only in train/ckpt-000000000030\n"),
                    ContainsRegex("user: 0 rows only .* 3 of 3 in both differ"),
                    HasSubstr("11 of 11 tensors and tables differ")));
  ASSERT_THAT(SaveTablesExample(&fs_, "train", 50, {user, item}), IsOk());
  EXPECT_EQ(Diff(Path(30), Path(50)).exit_code, kExitDone);
}

TEST_F(CheckpointDiffTest, NamesTheDamageOfTheOther) {
  Damage(20, kParametersFile);
  const VerbResult result = Diff(Path(10), Path(20));
  EXPECT_EQ(result.exit_code, kExitBadCheckpoint);
  EXPECT_THAT(result.error, HasSubstr("is damaged"));
}

}  // namespace
}  // namespace muster
