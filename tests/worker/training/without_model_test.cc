#include "worker/training/without_model.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/config/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<TrainingSpec> Complete(const std::string& more) {
  TrainingSpec spec;
  const absl::Status parsed = ParseTextProto(
      absl::StrCat("optimizer { name: 'sgd' attr { name: 'learning_rate' f: 1 "
                   "} } ",
                   more),
      "t", &spec);
  EXPECT_THAT(parsed, IsOk());
  return CompleteProgramTraining(spec);
}

TEST(WithoutModelTest, TrainingOfAProgram_GetsDefaultsAndNeedsNoStop) {
  const auto spec = Complete("");
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->optimizer().schedule().name(), "constant");
  EXPECT_TRUE(spec->replication().has_async());
  EXPECT_EQ(spec->placement().strategy(), "round_robin");
  EXPECT_EQ(spec->checkpoint().keep(), 5);
  EXPECT_EQ(spec->summary().every_steps(), 100);
  EXPECT_EQ(spec->summary().images(), 0);
  EXPECT_EQ(spec->non_finite().max_refusals(), 3);
  EXPECT_FALSE(spec->has_input());
  EXPECT_FALSE(spec->has_evaluation());
}

TEST(WithoutModelTest, FieldsThatNobodyWouldLookAt_AreRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"model {}", "model: "},
      {"input { batch_size: 3 }", "input: "},
      {"evaluation { every_steps: 1 }", "evaluation: "},
      {"tower {}", "tower: "},
      {"compute {}", "compute: "},
      {"log_tensors { every_steps: 1 }", "log_tensors: "},
      {"class_weight { class: 'a' }", "class_weight: "},
      {"checkpoint { keep_best {} }", "checkpoint.keep_best: "},
      {"stop { target_accuracy: 0.5 }", "stop.target_accuracy: "},
      {"stop { plateau {} }", "stop.plateau: "},
      {"summary { images: 2 }", "summary.images: "},
      {"gradient { clip { by_norm: 1 } }", "gradient.clip: "},
      {"gradient { accumulate_batches: 2 }", "gradient.accumulate_batches: "},
      {"replication { async { pipeline_depth: 2 } }", "pipeline_depth: "},
      {"replication { async { pull: IN_PLACE } }", "IN_PLACE: "},
  };
  for (const auto& [more, field] : cases) {
    EXPECT_THAT(Complete(more),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(field)));
  }
}

TEST(WithoutModelTest, WrongValues_AreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"replication { bounded_staleness { bound: -1 } }", "bound"},
      {"gradient { error_feedback: true }", "gradient.codec"},
      {"checkpoint { every_steps: -1 }", "checkpoint.every_steps"},
      {"non_finite { max_refusals: -1 }", "non_finite.max_refusals"},
      {"summary { every_steps: -1 }", "summary.every_steps"},
      {"stop { seconds: -1 }", "stop.seconds"},
  };
  for (const auto& [more, field] : cases) {
    EXPECT_THAT(Complete(more),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(field)));
  }
}

}  // namespace
}  // namespace muster
