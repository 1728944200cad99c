#include "worker/ctl/inspect_checkpoint.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/safetensors_reader.h"
#include "common/checkpoint/train_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"
#include "worker/session/session_messages.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kDir[] = "train";

class InspectCheckpointTest : public ::testing::Test {
 protected:
  InspectCheckpointTest() {
    Save(10, 1);
    Save(20, 2);
  }
  void Save(int64_t step, int64_t version) {
    EXPECT_THAT(SaveSmall(&fs_, kDir, step, Retention(), version), IsOk());
  }
  std::string Path(int64_t step) {
    return absl::StrCat(kDir, "/", CheckpointName(step));
  }
  void Damage(int64_t step, const std::string& file) {
    const std::string path = absl::StrCat(Path(step), "/", file);
    std::string contents = fs_.Contents(path);
    contents.back() = static_cast<char>(contents.back() ^ 1);
    fs_.SetContents(path, contents);
  }
  Inspection Inspect(const std::string& path, const std::string& diff_with = "",
                     const std::string& export_to = "") {
    return InspectCheckpoint(&fs_, {path, diff_with, export_to});
  }

  FakeFileSystem fs_{kDir};
};

TEST_F(InspectCheckpointTest, ListsATrainDir) {
  const Inspection inspection = Inspect(kDir);
  EXPECT_EQ(inspection.exit_code, kExitDone) << inspection.error;
  EXPECT_THAT(inspection.text,
              ContainsRegex("ckpt-000000000010  whole  step=10 epoch=3 .*"
                            "parameters=3 bytes=[0-9]+\n"
                            "ckpt-000000000020  whole  step=20 "));
}

TEST_F(InspectCheckpointTest, SaysWhyOneIsNotWhole) {
  Damage(20, kSlotsFile);
  const Inspection inspection = Inspect(kDir);
  EXPECT_EQ(inspection.exit_code, kExitBadCheckpoint);
  EXPECT_THAT(inspection.text,
              AllOf(HasSubstr("ckpt-000000000010  whole"),
                    ContainsRegex("ckpt-000000000020  NOT USABLE .*"
                                  "slots.safetensors.*'dense/weights/v' is "
                                  "damaged")));
}

TEST_F(InspectCheckpointTest, ListsTheTensorsOfOne) {
  const Inspection inspection = Inspect(Path(10));
  EXPECT_EQ(inspection.exit_code, kExitDone) << inspection.error;
  EXPECT_THAT(
      inspection.text,
      AllOf(HasSubstr("train/ckpt-000000000010: whole\n"),
            HasSubstr("optimizer=adam"),
            HasSubstr("/job:worker/task:0 position=rows epoch=0 rows=10 "
                      "step_rows=0 steps="),
            ContainsRegex("dense/weights +float32 +24 bytes  "
                          "crc32c=[0-9a-f]{8}  \\[3, 2\\]\n"),
            ContainsRegex("bn/mean +float32 +16 bytes .*\\[4\\] state\n"),
            ContainsRegex("conv/weights/t +int64 +8 bytes .*\\[1\\]\n")));
}

TEST_F(InspectCheckpointTest, NamesTheDamageOfOne) {
  Damage(10, kParametersFile);
  const Inspection inspection = Inspect(Path(10));
  EXPECT_EQ(inspection.exit_code, kExitBadCheckpoint);
  EXPECT_THAT(inspection.error, HasSubstr("'dense/weights' is damaged"));
}

TEST_F(InspectCheckpointTest, FindsNoDifferenceBetweenEqualTensors) {
  Save(30, 1);
  const Inspection inspection = Inspect(Path(10), Path(30));
  EXPECT_EQ(inspection.exit_code, kExitDone) << inspection.error;
  EXPECT_THAT(inspection.text, HasSubstr("0 of 9 tensors differ"));
}

TEST_F(InspectCheckpointTest, SaysWhichTensorsDifferAndHowFar) {
  const Inspection inspection = Inspect(Path(10), Path(20));
  EXPECT_EQ(inspection.exit_code, kExitFailed) << inspection.error;
  EXPECT_THAT(inspection.text,
              AllOf(ContainsRegex("dense/weights: 6 of 6 elements differ, the "
                                  "first is 0; largest difference "),
                    HasSubstr("9 of 9 tensors differ")));
}

TEST_F(InspectCheckpointTest, ComparesOtherShapesByName) {
  ASSERT_THAT(SaveExample(&fs_, kDir, 30), IsOk());
  const Inspection inspection = Inspect(Path(10), Path(30));
  EXPECT_EQ(inspection.exit_code, kExitFailed);
  EXPECT_THAT(inspection.text,
              HasSubstr("conv/weights: [2500] of float32 and [65537]"));
}

TEST_F(InspectCheckpointTest, ExportsTheParametersOfTheNewestWholeOne) {
  Damage(20, kManifestFile);
  ASSERT_THAT(fs_.CreateFolder("train/out"), IsOk());
  const Inspection inspection = Inspect(kDir, "", "train/out/w.safetensors");
  EXPECT_EQ(inspection.exit_code, kExitDone) << inspection.error;
  EXPECT_THAT(inspection.text,
              AllOf(HasSubstr("000000000020' is not usable"),
                    HasSubstr("of train/ckpt-000000000010 to train/out/w")));
  // The same tensors and bytes as in the checkpoint.
  EXPECT_EQ(fs_.Contents("train/out/w.safetensors"),
            fs_.Contents(Path(10) + "/" + kParametersFile));
}

TEST_F(InspectCheckpointTest, ExportsOverNothing) {
  ASSERT_THAT(fs_.CreateFolder("train/out"), IsOk());
  fs_.SetContents("train/out/w", "mine");
  const Inspection inspection = Inspect(kDir, "", "train/out/w");
  EXPECT_EQ(inspection.exit_code, kExitBadConfig);
  EXPECT_THAT(inspection.error, HasSubstr("--export_to wants a new file"));
  EXPECT_EQ(fs_.Contents("train/out/w"), "mine");
}

TEST_F(InspectCheckpointTest, RefusesOtherPaths) {
  EXPECT_EQ(Inspect("nowhere").exit_code, kExitBadConfig);
  ASSERT_THAT(fs_.CreateFolder("train/out"), IsOk());
  const Inspection inspection = Inspect("train/out");
  EXPECT_EQ(inspection.exit_code, kExitBadConfig);
  EXPECT_THAT(inspection.error, HasSubstr("neither a checkpoint nor"));
  EXPECT_THAT(inspection.text, Not(HasSubstr("whole")));
}

}  // namespace
}  // namespace muster
