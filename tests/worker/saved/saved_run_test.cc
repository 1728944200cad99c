// A model that was trained in this process is evaluated, and used for
// predictions.
#include "worker/saved/saved_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/config/json.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/ticking_clock.h"
#include "tests/worker/saved/saved_training.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SavedRunTest : public SavedTraining {
 protected:
  void SetUp() override {
    SavedTraining::SetUp();
    train_dir_ = NewTrainDir("train");
  }

  // The exit code.
  int Train(const std::string& training) {
    return TrainIn(train_dir_, training);
  }

  SavedRunOptions Saved(const std::string& training,
                        const std::string& output) {
    SavedRunOptions options;
    options.model = Model(training);
    options.train_dir = train_dir_;
    options.output = output.empty() ? "" : absl::StrCat(dir_, "/", output);
    return options;
  }

  std::vector<std::string> LinesOf(const std::string& name) {
    return absl::StrSplit(ReadAll(absl::StrCat(dir_, "/", name)), '\n',
                          absl::SkipEmpty());
  }

  // The numbers of each row, after the first `ignored` fields.
  std::vector<std::vector<double>> Predicted(const std::string& training,
                                             PredictionValues values,
                                             int ignored) {
    SavedRunOptions options = Saved(training, "numbers.csv");
    options.values = values;
    EXPECT_THAT(PredictSaved(options), IsOk());
    std::vector<std::vector<double>> rows;
    for (const std::string& line : LinesOf("numbers.csv")) {
      const std::vector<std::string> fields = absl::StrSplit(line, ',');
      std::vector<double> numbers;
      for (size_t i = ignored; i < fields.size(); ++i) {
        double number = 0;
        if (absl::SimpleAtod(fields[i], &number)) numbers.push_back(number);
      }
      // The header has none.
      if (!numbers.empty()) rows.push_back(numbers);
    }
    return rows;
  }

  std::string train_dir_;
};

TEST_F(SavedRunTest, ARegressionTrainsEvaluatesAndPredicts) {
  std::string rows = "x,y,label\n";
  for (int i = 0; i < 16; ++i) {
    const double x = i % 4, y = i / 4;
    absl::StrAppend(&rows, x, ",", y, ",", 2 * x - y + 0.5, "\n");
  }
  Write("train.csv", rows);
  Write("test.csv", "x,y,label\n1,1,1.5\n0,3,-2.5\n3,0,6.5\n2,2,2.5\n");
  ASSERT_EQ(Train(kRegression), kExitDone);
  const auto result = ReadResult(train_dir_);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("test_accuracy"), nullptr);
  EXPECT_LT(std::stod(result->Find("test_mean_absolute_error")->text), 0.05);

  ASSERT_THAT(EvaluateSaved(Saved(kRegression, "figures.json")), IsOk());
  const auto figures = ParseJson(ReadAll(dir_ + "/figures.json"));
  ASSERT_THAT(figures, IsOk());
  for (const char* name : {"test_mean_absolute_error", "test_loss"}) {
    EXPECT_EQ(figures->Find(name)->text, result->Find(name)->text) << name;
  }

  const TickingClock clock(absl::Seconds(10));
  for (const auto& [use, work] : {std::pair(&EvaluateSaved, "evaluation"),
                                  std::pair(&PredictSaved, "prediction")}) {
    SavedRunOptions slow = Saved(kRegression, "slow.csv");
    slow.clock = &clock;
    ASSERT_THAT(use(slow), IsOk());
    EXPECT_THAT(Lines(),
                Contains(AllOf(HasSubstr(absl::StrCat(work, ": 3 of 4 rows, ")),
                               HasSubstr("s left"))));
  }

  // Rows without a label, and no training half.
  std::remove((dir_ + "/train.csv").c_str());
  Write("test.csv", "x,y\n1,1\n0,3\n3,0\n2,2\n");
  ASSERT_THAT(PredictSaved(Saved(kRegression, "out.csv")), IsOk());
  const std::vector<std::string> lines = LinesOf("out.csv");
  ASSERT_EQ(lines.size(), 5);
  EXPECT_EQ(lines[0], "output_0");
  const double wanted[] = {1.5, -2.5, 6.5, 2.5};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(std::stod(lines[i + 1]), wanted[i], 0.1) << i;
  }
}

TEST_F(SavedRunTest, TheValidationHalfOfTheRunIsEvaluatedAndPredicted) {
  std::string rows = "x,y,label\n";
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&rows, i % 7, ",", i % 5, ",", i % 7 - i % 5, "\n");
  }
  Write("train.csv", rows);
  const std::string training =
      absl::StrCat(kRegression, "input { validation_fraction: 0.3 }");
  ASSERT_EQ(Train(training), kExitDone);
  const auto result = ReadResult(train_dir_);
  ASSERT_THAT(result, IsOk());
  SavedRunOptions options = Saved(training, "figures.json");
  EXPECT_THAT(EvaluateSaved(options), StatusIs(absl::StatusCode::kNotFound,
                                               HasSubstr("--half=validation")));
  options.half = Split::kValidation;
  ASSERT_THAT(EvaluateSaved(options), IsOk());
  const auto figures = ParseJson(ReadAll(dir_ + "/figures.json"));
  ASSERT_THAT(figures, IsOk());
  for (const char* name :
       {"validation_mean_absolute_error", "validation_loss"}) {
    ASSERT_NE(figures->Find(name), nullptr);
    EXPECT_EQ(figures->Find(name)->text, result->Find(name)->text) << name;
  }
  options.output = dir_ + "/out.csv";
  ASSERT_THAT(PredictSaved(options), IsOk());
  EXPECT_EQ(absl::StrCat(LinesOf("out.csv").size() - 1),
            result->Find("validation_examples")->text);
}

// The batches of the evaluation have 11 and 15 of all weights.
TEST_F(SavedRunTest, WeightedRows_HaveTheTrainingsLossOfTheWholeHalf) {
  const std::string rows =
      "w,x,y,label\n1,5,0,left\n2,0,5,right\n0,4,1,left\n3,1,4,right\n";
  Write("train.csv", rows);
  Write("test.csv", rows);
  data_.push_back("input.weight_column=w");
  data_.push_back("class_weight={class: 'right' weight: 5}");
  ASSERT_EQ(Train(kClassifier), kExitDone);
  const auto result = ReadResult(train_dir_);
  ASSERT_THAT(result, IsOk());
  ASSERT_THAT(EvaluateSaved(Saved(kClassifier, "figures.json")), IsOk());
  const auto figures = ParseJson(ReadAll(dir_ + "/figures.json"));
  ASSERT_THAT(figures, IsOk());
  EXPECT_EQ(figures->Find("test_loss")->text, result->Find("test_loss")->text);

  // Of new rows without weights.
  Write("test.csv", "x,y\n5,0\n0,5\n4,1\n1,4\n");
  const auto found = Predicted(kClassifier, PredictionValues::kAuto, 1);
  ASSERT_EQ(found.size(), 4);
  const double weights[] = {1, 10, 0, 15};
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum -= weights[i] * std::log(found[i][i % 2]);
  EXPECT_NEAR(std::stod(figures->Find("test_loss")->text), sum / 26, 1e-6);
}

TEST_F(SavedRunTest, AClassifierNamesTheClassesInOrder) {
  const std::string rows =
      "x,y,label\n5,0,left\n0,5,right\n4,1,left\n1,4,right\n5,1,left\n";
  Write("train.csv", rows);
  Write("test.csv", rows);
  ASSERT_EQ(Train(kClassifier), kExitDone);
  const auto result = ReadResult(train_dir_);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("test_accuracy")->text, "1");
  ASSERT_THAT(PredictSaved(Saved(kClassifier, "out.csv")), IsOk());
  const std::vector<std::string> lines = LinesOf("out.csv");
  ASSERT_EQ(lines.size(), 6);
  EXPECT_EQ(lines[0], "class,probability_left,probability_right");
  const char* wanted[] = {"left", "right", "left", "right", "left"};
  for (int i = 0; i < 5; ++i) {
    const std::vector<std::string> fields = absl::StrSplit(lines[i + 1], ',');
    EXPECT_EQ(fields[0], wanted[i]) << i;
    EXPECT_NEAR(std::stod(fields[1]) + std::stod(fields[2]), 1, 1e-6) << i;
  }
}

// Also of outputs whose exponentials no float holds.
TEST_F(SavedRunTest, ProbabilitiesAreTheSoftmaxOfTheOutputs) {
  const std::string rows = "x,y,label\n5,0,0\n0,5,1\n1,1,0\n1,2,1\n5000,0,0\n";
  Write("train.csv", "x,y,label\n5,0,0\n0,5,1\n4,1,0\n1,4,1\n");
  Write("test.csv", rows);
  ASSERT_EQ(Train(kClassifier), kExitDone);
  const auto outputs = Predicted(kClassifier, PredictionValues::kOutputs, 1);
  const auto found = Predicted(kClassifier, PredictionValues::kAuto, 1);
  ASSERT_EQ(outputs.size(), 5);
  ASSERT_EQ(found.size(), 5);
  for (size_t i = 0; i < found.size(); ++i) {
    const double first = 1 / (1 + std::exp(outputs[i][1] - outputs[i][0]));
    EXPECT_NEAR(found[i][0], first, 1e-6) << i;
    EXPECT_NEAR(found[i][1], 1 - first, 1e-6) << i;
  }
  EXPECT_GT(outputs[4][0], 100);
}

TEST_F(SavedRunTest, ProbabilitiesByThemselvesAreTheSigmoidOfTheOutputs) {
  const std::string rows = "x,y,label\n5,0,1\n0,5,0\n4,1,1\n1,4,0\n";
  Write("train.csv", rows);
  Write("test.csv", rows);
  const std::string training = absl::StrReplaceAll(
      kRegression, {{"mean_squared_error", "sigmoid_cross_entropy"}});
  ASSERT_EQ(Train(training), kExitDone);
  const auto outputs = Predicted(training, PredictionValues::kOutputs, 0);
  const auto found = Predicted(training, PredictionValues::kAuto, 0);
  ASSERT_EQ(found.size(), 4);
  ASSERT_EQ(outputs.size(), 4);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i][0], 1 / (1 + std::exp(-outputs[i][0])), 1e-6) << i;
    EXPECT_EQ(found[i][0] > 0.5, i % 2 == 0) << i;
  }
}

TEST_F(SavedRunTest, ClassesHaveTheTrainingsNamesWhereTheRowsHaveNone) {
  const std::string rows =
      "x,y,label\n5,0,left\n0,5,right\n4,1,left\n1,4,right\n";
  Write("train.csv", rows);
  Write("test.csv", rows);
  ASSERT_EQ(Train(kClassifier), kExitDone);
  std::remove((dir_ + "/train.csv").c_str());
  Write("test.csv", "x,y\n0,5\n");
  SavedRunOptions options = Saved(kClassifier, "out.csv");
  options.values = PredictionValues::kClass;
  ASSERT_THAT(PredictSaved(options), IsOk());
  EXPECT_THAT(LinesOf("out.csv"), ElementsAre("class", "right"));
}

// A schema has other bytes for them: all that it holds is UTF-8.
TEST_F(SavedRunTest, ClassesAreNamedAsInTheFilesWhateverTheirBytes) {
  const std::string rows =
      "x,y,label\n5,0,a\\b\n0,5,caf\xE9\n4,1,a\\b\n1,4,caf\xE9\n";
  Write("train.csv", rows);
  Write("test.csv", rows);
  ASSERT_EQ(Train(kClassifier), kExitDone);
  SavedRunOptions options = Saved(kClassifier, "out.csv");
  options.values = PredictionValues::kClass;
  ASSERT_THAT(PredictSaved(options), IsOk());
  EXPECT_THAT(LinesOf("out.csv"),
              ElementsAre("class", "a\\b", "caf\xE9", "a\\b", "caf\xE9"));
}

// More bad rows than a batch has, at the beginning, in the middle and at the
// end.
TEST_F(SavedRunTest, ABadRowKeepsItsPlaceAmongThePredictions) {
  const std::string rows =
      "x,y,label\n5,0,left\n0,5,right\n4,1,left\n1,4,right\n";
  Write("train.csv", rows);
  Write("test.csv", rows);
  ASSERT_EQ(Train(kClassifier), kExitDone);
  Write("test.csv", "x,y\nbad,1\n5,0\n0,5\nbad,1\n1\n1,bad\n,\n4,1\nbad,0\n");
  SavedRunOptions options = Saved(kClassifier, "out.csv");
  options.values = PredictionValues::kClass;
  EXPECT_THAT(PredictSaved(options),
              StatusIs(absl::StatusCode::kInvalidArgument));
  options.model.training.mutable_input()->set_on_bad_record(SKIP);
  ASSERT_THAT(PredictSaved(options), IsOk());
  EXPECT_THAT(LinesOf("out.csv"),
              ElementsAre("class", "\"\"", "left", "right", "\"\"", "\"\"",
                          "\"\"", "\"\"", "left", "\"\""));
  EXPECT_THAT(Lines(), Contains(HasSubstr("prediction: 6 of 9 rows are bad")));
}

// The sum of what a row of numbers near the largest float is multiplied with.
constexpr char kOverflowing[] = "3e38,-3e38";

TEST_F(SavedRunTest, ARowWithoutAFiniteOutputIsNoPrediction) {
  const std::string rows =
      "x,y,label\n5,0,left\n0,5,right\n4,1,left\n1,4,right\n";
  Write("train.csv", rows);
  Write("test.csv", rows);
  data_.push_back("stop.steps=500");
  ASSERT_EQ(Train(kClassifier), kExitDone);
  Write("test.csv",
        absl::StrCat("x,y,label\n", kOverflowing, ",left\n5,0,left\n"));
  ASSERT_THAT(EvaluateSaved(Saved(kClassifier, "figures.json")), IsOk());
  const auto figures = ParseJson(ReadAll(dir_ + "/figures.json"));
  ASSERT_THAT(figures, IsOk());
  EXPECT_EQ(figures->Find("test_accuracy")->text, "0.5");
  EXPECT_EQ(figures->Find("test_loss")->kind, JsonValue::Kind::kNull);
  EXPECT_EQ(figures->Find("test_non_finite_rows")->text, "1");

  ASSERT_THAT(PredictSaved(Saved(kClassifier, "out.csv")), IsOk());
  const std::vector<std::string> lines = LinesOf("out.csv");
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[1], ",,");
  EXPECT_THAT(lines[2], HasSubstr("left,"));
  EXPECT_THAT(Lines(), Contains(HasSubstr("the outputs of 1 of 2 rows are "
                                          "NaN or infinite")));
}

TEST_F(SavedRunTest, NothingButNanIsAnErrorAndNoFile) {
  const std::string rows = "x,y,label\n5,0,0\n0,5,1\n4,1,0\n1,4,1\n";
  Write("train.csv", rows);
  Write("test.csv", rows);
  data_.push_back("optimizer.learning_rate=1e38");
  data_.push_back("non_finite.allow=true");
  ASSERT_EQ(Train(kClassifier), kExitDone);
  SavedRunOptions options = Saved(kClassifier, "out.csv");
  EXPECT_THAT(PredictSaved(options), IsOk()) << "it is allowed";
  EXPECT_THAT(LinesOf("out.csv"), Contains(",,").Times(4));
  std::remove((dir_ + "/out.csv").c_str());
  options.model.training.mutable_non_finite()->set_allow(false);
  const auto ruined =
      StatusIs(absl::StatusCode::kOutOfRange,
               HasSubstr("the outputs of all 4 rows are NaN or infinite"));
  EXPECT_THAT(PredictSaved(options), ruined);
  EXPECT_EQ(ReadAll(dir_ + "/out.csv"), "");
  EXPECT_THAT(EvaluateSaved(options), ruined);
  EXPECT_THAT(Lines(), Contains(HasSubstr("test_accuracy=0.0000 test_loss=nan "
                                          "test_non_finite_rows=4")));
}

TEST_F(SavedRunTest, OnlyBadRowsAreNoPredictions) {
  Write("train.csv", "x,y,label\n5,0,0\n0,5,1\n4,1,0\n1,4,1\n");
  Write("test.csv", "x,y,label\n5,0,0\n");
  ASSERT_EQ(Train(kClassifier), kExitDone);
  Write("test.csv", "x,y\nbad,1\n");
  SavedRunOptions options = Saved(kClassifier, "out.csv");
  options.model.training.mutable_input()->set_on_bad_record(SKIP);
  EXPECT_THAT(PredictSaved(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rows one after the other are bad")));
  EXPECT_EQ(ReadAll(dir_ + "/out.csv"), "");
}

TEST_F(SavedRunTest, WithoutACheckpointItSaysSoAndWritesNothing) {
  Write("train.csv", "x,y,label\n1,1,0\n2,1,1\n");
  Write("test.csv", "x,y,label\n1,1,0\n");
  EXPECT_THAT(PredictSaved(Saved(kClassifier, "out.csv")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("--train_dir=")));
  EXPECT_EQ(ReadAll(dir_ + "/out.csv"), "");
}

TEST_F(SavedRunTest, WhatDoesNotFitIsRefusedByName) {
  Write("train.csv", "x,y,label\n1,1,0\n2,1,1\n");
  Write("test.csv", "x,y,label\n1,1,0\n");
  EXPECT_THAT(
      PredictSaved(Saved(kClassifier, "")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--output=FILE")));
  SavedRunOptions options = Saved(kRegression, "out.csv");
  options.values = PredictionValues::kProbabilities;
  EXPECT_THAT(PredictSaved(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--values=outputs")));
  options = Saved(kClassifier, "out.csv");
  options.train_dir.clear();
  EXPECT_THAT(PredictSaved(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--init_from=FILE.safetensors")));
}

// The bytes behind the header of a .npy file.
template <typename T>
std::vector<T> NumbersOf(const std::string& npy) {
  const size_t start = npy.find('\n') + 1;
  std::vector<T> numbers((npy.size() - start) / sizeof(T));
  std::memcpy(numbers.data(), npy.data() + start, npy.size() - start);
  return numbers;
}

TEST_F(SavedRunTest, LabelsAreThoseOfTheRowsInOrder) {
  Write("train.csv", "x,y,label\n5,0,0\n0,5,1\n4,1,0\n1,4,1\n");
  Write("test.csv", "x,y,label\n5,0,0\nbad,1,1\n0,5,1\n1,4,1\n4,0,0\n");
  data_.push_back("input.on_bad_record=SKIP");
  ASSERT_EQ(Train(kClassifier), kExitDone);
  SavedRunOptions options = Saved(kClassifier, "out.npy");
  options.labels = dir_ + "/labels.npy";
  ASSERT_THAT(PredictSaved(options), IsOk());
  EXPECT_THAT(NumbersOf<int64_t>(ReadAll(options.labels)),
              ElementsAre(0, -1, 1, 1, 0));

  options.labels = dir_ + "/labels.csv";
  EXPECT_THAT(PredictSaved(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("wanted a file that ends in .npy")));
}

TEST_F(SavedRunTest, LabelsOfARegressionAreItsTargets) {
  Write("train.csv", "x,y,label\n1,1,1.5\n0,3,-2.5\n3,0,6.5\n2,2,2.5\n");
  Write("test.csv", "x,y,label\n1,1,1.5\n0,3,-2.5\n");
  ASSERT_EQ(Train(kRegression), kExitDone);
  SavedRunOptions options = Saved(kRegression, "out.npy");
  options.labels = dir_ + "/labels.npy";
  ASSERT_THAT(PredictSaved(options), IsOk());
  EXPECT_THAT(NumbersOf<float>(ReadAll(options.labels)),
              ElementsAre(1.5f, -2.5f));
}

TEST_F(SavedRunTest, AnOutputThatCannotBeWritten_IsSaidBeforeTheData) {
  SavedRunOptions options = Saved(kClassifier, "nowhere/figures.json");
  EXPECT_THAT(EvaluateSaved(options),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("--output: ")));
  options.output = dir_;
  EXPECT_THAT(EvaluateSaved(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("wanted a file, found a folder")));
}

TEST_F(SavedRunTest, ATargetAccuracyWantsAnAccuracy) {
  Write("train.csv", "x,y,label\n1,1,0\n2,1,1\n1,2,1\n3,1,0\n");
  Write("test.csv", "x,y,label\n1,1,0\n");
  data_.push_back("stop.target_accuracy=0.9");
  data_.push_back("evaluation.every_steps=10");
  const auto options = MakeOptions(kRegression, data_, train_dir_);
  ASSERT_THAT(options, IsOk());
  EXPECT_THAT(CreateTask(*options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stop.target_accuracy")));
}

}  // namespace
}  // namespace muster
