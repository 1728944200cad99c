#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/table_fixture.h"
#include "tests/worker/ctl/verb_fixture.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class CheckpointExportTest : public VerbFixture {
 protected:
  CheckpointExportTest() { EXPECT_THAT(fs_.CreateFolder("train/out"), IsOk()); }

  VerbResult Export(const std::string& file) {
    return Ctl({"checkpoint", "export", "train", file});
  }
};

TEST_F(CheckpointExportTest, ExportsTheParametersOfTheNewestWholeOne) {
  Damage(20, kManifestFile);
  const VerbResult result = Export("train/out/w.safetensors");
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("000000000020' is not usable"),
                    HasSubstr("of train/ckpt-000000000010 to train/out/w")));
  // The same tensors and bytes as in the checkpoint.
  EXPECT_EQ(fs_.Contents("train/out/w.safetensors"),
            fs_.Contents(Path(10) + "/" + kParametersFile));
}

TEST_F(CheckpointExportTest, RowsOfTables_AreExportedBesideParameters) {
  const ExampleTable user = MakeExampleTable("user", 2, {0, 1, -1});
  ASSERT_THAT(SaveTablesExample(&fs_, "train", 30, {user}), IsOk());
  EXPECT_EQ(Export("train/out/w").exit_code, kExitDone);
  EXPECT_THAT(fs_.Contents("train/out/w"),
              AllOf(HasSubstr(R"("user/ids":{"dtype":"I64","shape":[3])"),
                    HasSubstr(R"("user/values":{"dtype":"F32","shape":[3,2])"),
                    HasSubstr(R"("dense/weights")"),
                    HasSubstr(MakeRows(user.saved, user.ids)
                                  .stream_bytes(RowBlock::kValues))));
}

TEST_F(CheckpointExportTest, LongExport_ShowsItsBytes) {
  EXPECT_EQ(Export("train/out/w.safetensors").exit_code, kExitDone);
  EXPECT_THAT(
      progress_.lines(),
      AllOf(Contains(HasSubstr("check of train/ckpt-000000000020: 0 of 0 MB")),
            Contains(HasSubstr("export: 0 of 0 MB, "))));
}

TEST_F(CheckpointExportTest, ExportsOverNothing) {
  fs_.SetContents("train/out/w", "mine");
  const VerbResult result = Export("train/out/w");
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("wanted a new file"));
  EXPECT_EQ(fs_.Contents("train/out/w"), "mine");
}

TEST_F(CheckpointExportTest, NothingWholeIsNothingToExport) {
  Damage(10, kParametersFile);
  Damage(20, kParametersFile);
  EXPECT_EQ(Export("train/out/w").exit_code, kExitBadCheckpoint);
}

}  // namespace
}  // namespace muster
