#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/ctl/verb_fixture.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class CheckpointVerifyTest : public VerbFixture {
 protected:
  VerbResult Verify(const std::string& path) {
    return Ctl({"checkpoint", "verify", path});
  }
};

TEST_F(CheckpointVerifyTest, GivesAWholeOneItsLine) {
  const VerbResult result = Verify(Path(20));
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out,
              MatchesRegex("ckpt-000000000020  whole  step=20 [^\n]*\n"));
}

TEST_F(CheckpointVerifyTest, SaysWhyOneOfATrainDirIsNotWhole) {
  Damage(20, kSlotsFile);
  const VerbResult result = Verify("train");
  EXPECT_EQ(result.exit_code, kExitBadCheckpoint);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("ckpt-000000000010  whole"),
                    ContainsRegex("ckpt-000000000020  NOT USABLE .*"
                                  "slots.safetensors.*'dense/weights/v' is "
                                  "damaged")));
}

TEST_F(CheckpointVerifyTest, LongCheck_ShowsEachCheckpoint) {
  EXPECT_EQ(Verify("train").exit_code, kExitDone);
  EXPECT_THAT(progress_.lines(),
              AllOf(Contains(HasSubstr("check of train/ckpt-000000000010: ")),
                    Contains(HasSubstr("check of train/ckpt-000000000020: "))));
}

TEST_F(CheckpointVerifyTest, AMissingFileIsNotWhole) {
  ASSERT_THAT(fs_.Remove(Path(10) + "/" + kManifestFile), IsOk());
  const VerbResult result = Verify(Path(10));
  EXPECT_EQ(result.exit_code, kExitBadCheckpoint);
  EXPECT_THAT(result.out, HasSubstr("NOT USABLE"));
}

TEST_F(CheckpointVerifyTest, RefusesOtherPaths) {
  const VerbResult result = Verify("nowhere");
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("'nowhere' is no folder"));
}

}  // namespace
}  // namespace muster
