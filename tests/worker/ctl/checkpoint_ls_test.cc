#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/manifest_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/table_fixture.h"
#include "tests/worker/ctl/verb_fixture.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckpointLsTest : public VerbFixture {
 protected:
  VerbResult List(const std::string& path) {
    return Ctl({"checkpoint", "ls", path});
  }
};

TEST_F(CheckpointLsTest, ListsATrainDir) {
  const VerbResult result = List("train");
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out,
              ContainsRegex("ckpt-000000000010  whole  step=10 epoch=3 .*"
                            "parameters=3 bytes=[0-9]+\n"
                            "ckpt-000000000020  whole  step=20 "));
}

TEST_F(CheckpointLsTest, NamesTheBestOneIfOneIsKept) {
  EXPECT_THAT(List("train").out, Not(HasSubstr("best")));
  ASSERT_THAT(SaveNamingBest(&fs_, "train", 30, /*best_step=*/10), IsOk());
  EXPECT_THAT(List("train").out,
              EndsWith("\nbest   ckpt-000000000010  test_accuracy=0.5\n"));
}

TEST_F(CheckpointLsTest, ListsTheTensorsOfOne) {
  const VerbResult result = List(Path(10));
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("train/ckpt-000000000010: whole\n"),
            HasSubstr("optimizer=adam"),
            HasSubstr("/job:worker/task:0 position=rows epoch=0 rows=10 "
                      "step_rows=0 steps="),
            ContainsRegex("dense/weights +float32 +24 bytes  "
                          "crc32c=[0-9a-f]{8}  \\[3, 2\\]\n"),
            ContainsRegex("bn/mean +float32 +16 bytes .*\\[4\\] state\n"),
            ContainsRegex("conv/weights/t +int64 +8 bytes .*\\[1\\]\n")));
}

TEST_F(CheckpointLsTest, Tables_AreListedWithTheirRows) {
  const ExampleTable user = MakeExampleTable("user", 2, {0, 1, -1});
  ASSERT_THAT(SaveTablesExample(&fs_, "train", 30, {user}), IsOk());
  EXPECT_THAT(List(Path(30)).out,
              AllOf(HasSubstr("parameters=3 tables=1 rows=3 bytes="),
                    HasSubstr("  table user  rows=3 dim=2 rule=adagrad "
                              "slots=[accumulator]\n")));
  EXPECT_THAT(List("train").out, HasSubstr("tables=1 rows=3"));
}

TEST_F(CheckpointLsTest, LedgerOfOne_IsSaidInWords) {
  CheckpointManifest set;
  RowLedger* const ledger = set.mutable_ledger();
  ledger->set_epoch_rows(200);
  ledger->set_front(240);
  ledger->set_repeated(5);
  ledger->set_skipped(10);
  for (int i = 0; i < 6; ++i) {
    RowRange* const undone = ledger->add_undone();
    undone->set_first(30 + 10 * i);
    undone->set_rows(5);
  }
  ASSERT_THAT(SaveWith(set, &fs_, "train", 30, Retention{3, 0}, 30), IsOk());
  EXPECT_THAT(
      List(Path(30)).out,
      AllOf(HasSubstr("\n  rows done=210: all before 240 (epoch 1, row 40 of "
                      "200) but 30 (rows 30 to 34, 40 to 44, 50 to 54, 60 to "
                      "64 and 2 more ranges); 5 trained on twice, 10 passed "
                      "over\n"),
            HasSubstr("/job:worker/task:0 steps=0 examples=0\n")));
}

TEST_F(CheckpointLsTest, LedgerWhoseRangesOverlap_EndsWithThree) {
  auto manifest = ReadManifestFile(&fs_, Path(10));
  ASSERT_THAT(manifest, IsOk());
  manifest->mutable_ledger()->set_front(240);
  for (int i = 0; i < 2; ++i) {
    RowRange* const undone = manifest->mutable_ledger()->add_undone();
    undone->set_first(30);
    undone->set_rows(5);
  }
  fs_.SetContents(absl::StrCat(Path(10), "/", kManifestFile),
                  *FormatManifest(*manifest));
  const VerbResult result = List(Path(10));
  EXPECT_EQ(result.exit_code, kExitBadCheckpoint);
  EXPECT_THAT(result.error, HasSubstr("the manifest is damaged: ledger"));
}

TEST_F(CheckpointLsTest, NamesTheDamageOfOne) {
  Damage(10, kParametersFile);
  const VerbResult result = List(Path(10));
  EXPECT_EQ(result.exit_code, kExitBadCheckpoint);
  EXPECT_THAT(result.error, HasSubstr("'dense/weights' is damaged"));
}

TEST_F(CheckpointLsTest, RefusesOtherPaths) {
  EXPECT_EQ(List("nowhere").exit_code, kExitBadConfig);
  ASSERT_THAT(fs_.CreateFolder("train/out"), IsOk());
  const VerbResult result = List("train/out");
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("neither a checkpoint nor"));
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace muster
