// A whole worker and its data: streams, bad records, other files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/task/local_training.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTraining[] = R"pb(
  model {
    name: "softmax_regression"
    input_shape: [ 2 ]
    layer {
      name: "logits"
      type: "dense"
      attr { name: "units" i: 3 }
    }
    layer { name: "loss" type: "softmax_cross_entropy" }
  }
  input { type: "csv" batch_size: 4 }
  optimizer {
    name: "sgd"
    attr { name: "learning_rate" f: 0.1 }
  }
  seed: 3
)pb";

class WorkerTaskDataTest : public LocalTraining {
 protected:
  WorkerTaskDataTest() : dir_(NewTrainDir("data")) {
    std::filesystem::create_directories(dir_);
    WriteRows("train.csv", 30);
    WriteRows("test.csv", 6);
  }

  void WriteRows(const std::string& name, int rows,
                 const std::string& bad_row = "") {
    std::ofstream file(absl::StrCat(dir_, "/", name));
    file << "x,y,label\n";
    for (int i = 0; i < rows; ++i) {
      file << i << "," << i % 7 << "," << i % 3 << "\n";
    }
    file << bad_row;
  }

  absl::StatusOr<std::unique_ptr<WorkerTask>> Create(
      const std::string& train_dir, int steps,
      std::vector<std::string> overrides = {}) {
    overrides.push_back(absl::StrCat("stop.steps=", steps));
    overrides.push_back(absl::StrCat("input.dir=", dir_));
    auto options = MakeOptions(kTraining, overrides, train_dir);
    if (!options.ok()) return options.status();
    options->progress_every = absl::ZeroDuration();
    return CreateTask(*options);
  }

  int Train(const std::string& train_dir, int steps,
            const std::vector<std::string>& overrides = {}) {
    const auto task = Create(train_dir, steps, overrides);
    EXPECT_THAT(task, IsOk());
    return task.ok() ? (*task)->Run() : -1;
  }

  // The error of a worker that does not start.
  absl::Status Refused(std::vector<std::string> overrides) {
    overrides.push_back("stop.steps=3");
    overrides.push_back(absl::StrCat("input.dir=", dir_));
    const auto options =
        MakeOptions(kTraining, overrides, NewTrainDir("refused"));
    if (!options.ok()) return options.status();
    return CreateTask(*options).status();
  }

  // The newest manifest, as a program of before schemas wrote it.
  static void MakeFormat4(const std::string& train_dir, int64_t step) {
    PosixFileSystem files;
    const std::string folder =
        absl::StrCat(train_dir, "/", CheckpointName(step));
    auto manifest = ReadManifestFile(&files, folder);
    ASSERT_THAT(manifest, IsOk());
    *manifest->mutable_data() = manifest->schema().training().files();
    manifest->clear_schema();
    DataPosition& position = *manifest->mutable_workers(0)->mutable_position();
    position.set_kind("rows");
    position.set_rows(manifest->ledger().front());
    manifest->clear_ledger();
    std::ofstream(folder + "/manifest.textproto") << *FormatManifest(*manifest);
    std::filesystem::remove(train_dir + "/schema.textproto");
  }

  static std::string Parameters(const std::string& train_dir, int64_t step) {
    const std::string bytes = ReadAll(absl::StrCat(
        train_dir, "/", CheckpointName(step), "/parameters.safetensors"));
    EXPECT_FALSE(bytes.empty());
    return bytes;
  }

  const std::string dir_;
};

TEST_F(WorkerTaskDataTest, AStreamGoesOnAtItsRow) {
  const std::vector<std::string> stream = {"input.stream=true",
                                           "input.shuffle_buffer=8"};
  const std::string whole = NewTrainDir("whole");
  ASSERT_EQ(Train(whole, 20, stream), kExitDone);
  // A pass has 7.5 steps; the restarts are in the middle of two of them.
  const std::string parts = NewTrainDir("parts");
  for (const int steps : {5, 13, 20}) {
    ASSERT_EQ(Train(parts, steps, stream), kExitDone);
  }
  EXPECT_EQ(Parameters(parts, 20), Parameters(whole, 20));
  EXPECT_THAT(Lines(), Contains(AllOf(HasSubstr("a stream of rows, 1 files"),
                                      HasSubstr(dir_))));
}

TEST_F(WorkerTaskDataTest, AStreamIsNotTakenForADataSet) {
  const std::string train_dir = NewTrainDir("other_order");
  ASSERT_EQ(Train(train_dir, 3, {"input.stream=true"}), kExitDone);
  EXPECT_NE(Train(train_dir, 6), kExitDone);
  EXPECT_THAT(Lines(), Contains(AllOf(HasSubstr("restore "),
                                      HasSubstr("'stream', wanted 'rows'"))));
}

TEST_F(WorkerTaskDataTest, SaysWhatDataItFoundAndWhatHasChanged) {
  const std::string train_dir = NewTrainDir("fresh");
  ASSERT_EQ(Train(train_dir, 3), kExitDone);
  EXPECT_THAT(Lines(), Contains(HasSubstr("30 rows in 3 classes, 1 files in")));
  ASSERT_EQ(Train(train_dir, 5), kExitDone);
  EXPECT_THAT(Lines(), Not(Contains(HasSubstr("not those of"))));
  WriteRows("train.csv", 40);
  ASSERT_EQ(Train(train_dir, 7), kExitDone);
  EXPECT_THAT(Lines(), Contains(AllOf(
                           HasSubstr("training data are not those of the run"),
                           HasSubstr("train.csv has "),
                           HasSubstr("there are 40 examples, were 30"))));
}

TEST_F(WorkerTaskDataTest, ColumnsInAnotherOrderAreThoseOfTheRun) {
  const std::string whole = NewTrainDir("whole");
  ASSERT_EQ(Train(whole, 6), kExitDone);
  const std::string parts = NewTrainDir("parts");
  ASSERT_EQ(Train(parts, 3), kExitDone);
  for (const char* name : {"train.csv", "test.csv"}) {
    const int rows = name == std::string("train.csv") ? 30 : 6;
    std::ofstream file(absl::StrCat(dir_, "/", name));
    file << "label,y,x\n";
    for (int i = 0; i < rows; ++i) {
      file << i % 3 << "," << i % 7 << "," << i << "\n";
    }
  }
  ASSERT_EQ(Train(parts, 6), kExitDone);
  EXPECT_EQ(Parameters(parts, 6), Parameters(whole, 6));
}

TEST_F(WorkerTaskDataTest, AnotherMapIsRefusedWhereARunGoesOn) {
  const std::string train_dir = NewTrainDir("mapped");
  ASSERT_EQ(Train(train_dir, 3), kExitDone);
  EXPECT_THAT(Create(train_dir, 6,
                     {"input.map={type: \"normalize\" attr { name: \"mean\" s: "
                      "\"1\" } attr { name: \"std\" s: \"1\" }}"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("input.map"), HasSubstr("train anew"))));
}

TEST_F(WorkerTaskDataTest, ARunOfBeforeSchemasGoesOnAndSaysSo) {
  const std::string train_dir = NewTrainDir("format4");
  ASSERT_EQ(Train(train_dir, 3), kExitDone);
  MakeFormat4(train_dir, 3);
  WriteRows("train.csv", 40);
  ASSERT_EQ(Train(train_dir, 6), kExitDone);
  EXPECT_THAT(Lines(), Contains(AllOf(HasSubstr("of format 4"),
                                      HasSubstr("worked out anew"))));
  EXPECT_THAT(Lines(),
              Contains(AllOf(HasSubstr("not those of the checkpoint"),
                             HasSubstr("there are 40 examples, were 30"))));
  EXPECT_THAT(ReadAll(train_dir + "/schema.textproto"), HasSubstr("rows: 40"));
}

TEST_F(WorkerTaskDataTest, TrainsOnInSpiteOfBadRecords) {
  WriteRows("train.csv", 30, "1,2\n");
  WriteRows("test.csv", 6, "nan,1,1\n");
  EXPECT_EQ(Train(NewTrainDir("bad"), 8, {"input.on_bad_record=SKIP"}),
            kExitDone);
  EXPECT_THAT(Lines(), Contains(AllOf(HasSubstr("skipped a bad record"),
                                      HasSubstr("line 32 of '"))));
  EXPECT_THAT(Lines(), Contains(HasSubstr("bad_records=1")));
  EXPECT_THAT(Lines(), Contains(HasSubstr("1 of 7 rows are bad")));
}

TEST_F(WorkerTaskDataTest,
       WithoutATestHalf_TrainsAndSaysThatNothingIsEvaluated) {
  std::filesystem::remove(absl::StrCat(dir_, "/test.csv"));
  const std::string train_dir = NewTrainDir("no_test_half");
  ASSERT_EQ(Train(train_dir, 3), kExitDone);
  EXPECT_THAT(Lines(), Contains(HasSubstr("nothing is evaluated")));
  EXPECT_THAT(Lines(), Not(Contains(HasSubstr("test_loss="))));
  const auto result = ReadResult(train_dir);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("test_loss"), nullptr);
  EXPECT_EQ(result->Find("global_step")->text, "3");
  // A start without a step leaves the figures that are there.
  const std::string before = ReadAll(train_dir + "/result.json");
  ASSERT_EQ(Train(train_dir, 3), kExitDone);
  EXPECT_EQ(ReadAll(train_dir + "/result.json"), before);
}

TEST_F(WorkerTaskDataTest, WithoutATestHalf_AGoalThatNeedsItIsRefused) {
  std::filesystem::remove(absl::StrCat(dir_, "/test.csv"));
  EXPECT_THAT(Refused({"evaluation.every_steps=2"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("evaluation.every_steps is 2")));
  EXPECT_THAT(Refused({"evaluation.every_steps=2", "stop.target_accuracy=0.9"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stop.target_accuracy is 0.9")));
}

TEST_F(WorkerTaskDataTest, ATestHalfThatIsBroken_IsNoAbsence) {
  std::filesystem::remove(absl::StrCat(dir_, "/test.csv"));
  std::filesystem::create_directories(absl::StrCat(dir_, "/test"));
  EXPECT_THAT(Refused({}), StatusIs(absl::StatusCode::kNotFound));
  WriteRows("test/part-0-of-2.csv", 6);
  EXPECT_THAT(Refused({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("1 of 2 are missing")));
}

TEST_F(WorkerTaskDataTest, PartsThatAreThere_AreTrainedOnAndCounted) {
  std::filesystem::remove(absl::StrCat(dir_, "/train.csv"));
  WriteRows("train-0-of-3.csv", 10);
  WriteRows("train-2-of-3.csv", 10);
  EXPECT_THAT(Refused({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("train-1-of-3.csv'")));
  for (const std::string stream : {"false", "true"}) {
    const std::string train_dir = NewTrainDir("any_" + stream);
    ASSERT_EQ(
        Train(train_dir, 3, {"input.parts=ANY", "input.stream=" + stream}),
        kExitDone);
  }
  EXPECT_THAT(
      Lines(),
      Contains(HasSubstr("training data: input.parts is ANY: 2 of 3 parts"))
          .Times(2));
}

TEST_F(WorkerTaskDataTest, ATestFraction_IsEvaluatedOnAndNotTrainedOn) {
  std::filesystem::remove(absl::StrCat(dir_, "/test.csv"));
  const std::string train_dir = NewTrainDir("fraction");
  ASSERT_EQ(Train(train_dir, 3, {"input.test_fraction=0.3"}), kExitDone);
  const auto result = ReadResult(train_dir);
  ASSERT_THAT(result, IsOk());
  const std::string& test_rows = result->Find("test_examples")->text;
  EXPECT_THAT(Lines(), Contains(HasSubstr(absl::StrCat(
                           "test data: input.test_fraction is 0.3: ", test_rows,
                           " of 30 rows"))));
  EXPECT_THAT(Lines(), Contains(HasSubstr(absl::StrCat(
                           "training data: ", 30 - std::stoi(test_rows),
                           " rows in 3 classes"))));
}

TEST_F(WorkerTaskDataTest, AValidationFraction_IsEvaluatedInTimeAndAtTheEnd) {
  const std::string train_dir = NewTrainDir("validation");
  const std::vector<std::string> flags = {"input.validation_fraction=0.3",
                                          "evaluation.every_steps=2"};
  ASSERT_EQ(Train(train_dir, 3, flags), kExitDone);
  const auto result = ReadResult(train_dir);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("test_examples")->text, "6");
  const int rows = std::stoi(result->Find("validation_examples")->text);
  EXPECT_THAT(Lines(),
              AllOf(Contains(HasSubstr("step=2 validation_accuracy=")),
                    Contains(HasSubstr("step=3 validation_accuracy=")),
                    Contains(HasSubstr("step=3 test_accuracy=")),
                    Not(Contains(HasSubstr("step=2 test_"))),
                    Contains(HasSubstr(absl::StrCat(
                        "training data: ", 30 - rows, " rows in 3 classes")))));
  EXPECT_THAT(ReadAll(train_dir + "/schema.textproto"),
              AllOf(HasSubstr("validation_fraction: 0.3"),
                    HasSubstr(absl::StrCat("rows: ", rows))));
  EXPECT_THAT(Create(train_dir, 6),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--set=input.validation_fraction=0.3")));
  // A start without a step leaves the figures that are there.
  const std::string before = ReadAll(train_dir + "/result.json");
  ASSERT_EQ(Train(train_dir, 3, flags), kExitDone);
  EXPECT_EQ(ReadAll(train_dir + "/result.json"), before);
  ASSERT_EQ(Train(train_dir, 6, flags), kExitDone);
}

TEST_F(WorkerTaskDataTest, AValidationHalfAlone_StopsAtTheTargetAccuracy) {
  std::filesystem::remove(absl::StrCat(dir_, "/test.csv"));
  const std::string train_dir = NewTrainDir("validation_alone");
  ASSERT_EQ(Train(train_dir, 50,
                  {"input.validation_fraction=0.3", "evaluation.every_steps=2",
                   "stop.target_accuracy=0.01"}),
            kExitDone);
  const auto result = ReadResult(train_dir);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("stop_reason")->text, "target_accuracy");
  EXPECT_NE(result->Find("validation_loss"), nullptr);
  EXPECT_EQ(result->Find("test_loss"), nullptr);
  EXPECT_THAT(Lines(),
              Contains(HasSubstr("the validation half alone is evaluated")));
}

TEST_F(WorkerTaskDataTest, BadRowsOfTheValidationHalf_AreLeftOutAndSaid) {
  // Of ten rows about three are of the validation half.
  std::string bad;
  for (int i = 0; i < 10; ++i) bad += "nan,1,1\n";
  WriteRows("train.csv", 30, bad);
  ASSERT_EQ(
      Train(NewTrainDir("bad_validation"), 3,
            {"input.validation_fraction=0.3", "input.on_bad_record=SKIP"}),
      kExitDone);
  EXPECT_THAT(Lines(), Contains(HasSubstr("rows are bad, and are left out")));
}

}  // namespace
}  // namespace muster
