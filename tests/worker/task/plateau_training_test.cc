// Trainings in this process that their evaluations end, or slow down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/config/json.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/task/local_training.h"
#include "worker/session/session_messages.h"
#include "worker/task/worker_task.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Evaluations at 5, 10, 15, ...; none is better than the first by so much.
constexpr char kTraining[] = R"pb(
  model {
    name: "softmax_regression"
    input_shape: [ 16 ]
    layer {
      name: "logits"
      type: "dense"
      attr { name: "units" i: 4 }
    }
    layer { name: "loss" type: "softmax_cross_entropy" }
  }
  input {
    type: "synthetic"
    batch_size: 16
    synthetic_examples: 320
    synthetic_test_examples: 64
    synthetic_classes: 4
  }
  optimizer {
    name: "momentum"
    attr { name: "learning_rate" f: 0.05 }
  }
  evaluation { every_steps: 5 }
  stop { plateau { metric: "test_loss" patience: 3 min_change: 100 } }
  seed: 3
)pb";

constexpr char kOnPlateau[] =
    "optimizer.schedule={name: 'on_plateau' metric: 'test_loss' factor: 0.5 "
    "patience: 1 min_change: 100}";
// The same rates: the third of evaluations 5, 10, 15 is the second bad one, and
// changes the rate of updates 17 and later, those after more than 15.
constexpr char kSameRates[] =
    "optimizer.schedule={name: 'piecewise' boundary: [15, 25, 35] "
    "value: [0.05, 0.025, 0.0125, 0.00625]}";

class PlateauTrainingTest : public LocalTraining {
 protected:
  int Train(const std::string& train_dir,
            const std::vector<std::string>& overrides = {}) {
    const auto options = MakeOptions(kTraining, overrides, train_dir);
    EXPECT_THAT(options, IsOk());
    if (!options.ok()) return -1;
    const auto task = CreateTask(*options);
    EXPECT_THAT(task, IsOk());
    return task.ok() ? (*task)->Run() : -1;
  }
  // Why it is not even begun.
  absl::Status Refusal(const std::vector<std::string>& overrides) {
    const auto options = MakeOptions(kTraining, overrides, /*train_dir=*/"");
    if (!options.ok()) return options.status();
    return CreateTask(*options).status();
  }
  static std::string Of(const std::string& train_dir, const char* field) {
    const auto result = ReadResult(train_dir);
    EXPECT_THAT(result, IsOk());
    return result.ok() ? result->Find(field)->text : "";
  }
  static std::string ParametersAt40(const std::string& train_dir) {
    std::string bytes =
        ReadAll(train_dir + "/ckpt-000000000040/parameters.safetensors");
    EXPECT_FALSE(bytes.empty());
    return bytes;
  }
};

TEST_F(PlateauTrainingTest, APlateau_EndsTheTrainingAtItsEvaluation) {
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir), kExitDone);
  EXPECT_EQ(Of(train_dir, "stop_reason"), "plateau");
  EXPECT_EQ(Of(train_dir, "global_step"), "20");
  EXPECT_THAT(Lines(),
              AllOf(Contains(HasSubstr("of step 5 is the best one so far")),
                    Contains(HasSubstr("of step 5 for 3 evaluations: the "
                                       "training ends")),
                    Contains(HasSubstr("the test half has a part"))));
  PosixFileSystem files;
  const auto manifest =
      ReadManifestFile(&files, train_dir + "/ckpt-000000000020");
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->evaluations().global_step(), 20);
  EXPECT_EQ(manifest->evaluations().stop().bad_evaluations(), 3);
}

TEST_F(PlateauTrainingTest, ARunThatAPlateauEnded_IsFinishedUnlessPatient) {
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir), kExitDone);
  const char* const line =
      "the training was finished already: step 20, by stop.plateau";
  EXPECT_THAT(Lines(), Not(Contains(HasSubstr(line))));
  ASSERT_EQ(Train(train_dir), kExitDone);
  EXPECT_EQ(Of(train_dir, "global_step"), "20");
  EXPECT_THAT(Lines(), Contains(HasSubstr(line)));
  ASSERT_EQ(Train(train_dir, {"stop.plateau={metric: 'test_loss' patience: 5 "
                              "min_change: 100}"}),
            kExitDone);
  EXPECT_EQ(Of(train_dir, "global_step"), "30") << "5 in a row, 3 of before";
}

// As it was killed after step 17, and after 10 before its evaluation is known.
TEST_F(PlateauTrainingTest, AStoppedRun_CountsTheSameEvaluations) {
  const std::string train_dir = NewTrainDir("train");
  const std::string plateau =
      "stop.plateau={metric: 'test_loss' patience: 3 min_change: 100}";
  for (const char* const stop : {"stop.steps=10", "stop.steps=17"}) {
    ASSERT_EQ(Train(train_dir, {stop, plateau}), kExitDone);
    EXPECT_EQ(Of(train_dir, "stop_reason"), "steps");
  }
  ASSERT_EQ(Train(train_dir), kExitDone);
  EXPECT_EQ(Of(train_dir, "stop_reason"), "plateau");
  EXPECT_EQ(Of(train_dir, "global_step"), "20");
}

TEST_F(PlateauTrainingTest, OnPlateau_MakesTheUpdatesOfItsRates) {
  const std::string plateau = NewTrainDir("plateau");
  const std::string piecewise = NewTrainDir("piecewise");
  const std::string parts = NewTrainDir("parts");
  ASSERT_EQ(Train(plateau, {"stop.steps=40", kOnPlateau}), kExitDone);
  ASSERT_EQ(Train(piecewise, {"stop.steps=40", kSameRates}), kExitDone);
  EXPECT_EQ(ParametersAt40(plateau), ParametersAt40(piecewise));
  for (const char* const stop :
       {"stop.steps=15", "stop.steps=16", "stop.steps=31", "stop.steps=40"}) {
    ASSERT_EQ(Train(parts, {stop, kOnPlateau}), kExitDone);
  }
  EXPECT_EQ(ParametersAt40(parts), ParametersAt40(piecewise));
}

TEST_F(PlateauTrainingTest, WhatNoEvaluationCanTell_IsRefusedByName) {
  EXPECT_THAT(Refusal({"stop.plateau.metric=test_lost"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("stop.plateau.metric"),
                             HasSubstr("test_loss, test_accuracy"))));
  EXPECT_THAT(Refusal({"stop.plateau.patience=0"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("stop.plateau.patience")));
  EXPECT_THAT(Refusal({"evaluation.every_steps=0"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("stop.plateau"),
                             HasSubstr("evaluation.every_steps"))));
  EXPECT_THAT(
      Refusal({"stop.steps=9", "evaluation.every_steps=0", kOnPlateau}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("on_plateau")));
}

}  // namespace
}  // namespace muster
