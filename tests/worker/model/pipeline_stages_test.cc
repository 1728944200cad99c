#include "worker/model/pipeline_stages.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"
#include "worker/model/program.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The program of kManyUsesModel for two rows; `devices` are those of its
// operations in turn, the last one's of all that follow.
Program ProgramOn(const std::vector<int>& devices) {
  const auto graph = ModelGraph::Create(ParseModel(kManyUsesModel));
  EXPECT_THAT(graph, IsOk());
  auto program = LowerModel(*graph, 2, Phase::kTraining);
  EXPECT_THAT(program, IsOk());
  for (size_t i = 0; i < program->ops.size(); ++i) {
    program->ops[i].device = i < devices.size() ? devices[i] : devices.back();
  }
  return *std::move(program);
}

const std::vector<std::string>& Names() {
  static const auto* const names =
      new std::vector<std::string>{"cpu:0", "cpu:1", "cpu:2"};
  return *names;
}

TEST(PipelineStagesTest, StagesAreInTheOrderOfTheForwardPass) {
  const auto pipeline =
      FindPipeline(ProgramOn({2, 2, 2, 0, 0, 1}), /*micro_batches=*/4, Names());
  ASSERT_THAT(pipeline, IsOk());
  ASSERT_EQ(pipeline->stages.size(), 3);
  EXPECT_EQ(pipeline->stages[0].device, 2);
  EXPECT_THAT(pipeline->stages[0].layers, ElementsAre("conv", "norm"));
  EXPECT_EQ(pipeline->stages[1].device, 0);
  EXPECT_EQ(pipeline->stages[2].device, 1);
  EXPECT_THAT(pipeline->title,
              HasSubstr("pipeline: 4 micro-batches of 2 rows; cpu:2 computes "
                        "conv to norm, cpu:0 "));
  EXPECT_THAT(pipeline->title, HasSubstr("batch norm takes"));
}

TEST(PipelineStagesTest, AStageThatGoesBackIsRefused) {
  EXPECT_THAT(FindPipeline(ProgramOn({0, 0, 1, 0}), 4, Names()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("it is on cpu:0 and reads 'norm' on cpu:1")));
}

TEST(PipelineStagesTest, OneStageIsNone) {
  EXPECT_THAT(FindPipeline(ProgramOn({1}), 4, Names()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("all layers, from 'conv' to 'loss', are on "
                                 "cpu:1")));
}

TEST(PipelineStagesTest, TwoOrMoreMicroBatchesDivideABatch) {
  EXPECT_THAT(CheckMicroBatches(2), IsOk());
  EXPECT_THAT(CheckMicroBatches(1), Not(IsOk()));
  EXPECT_THAT(CheckDivides(4, 8), IsOk());
  EXPECT_THAT(CheckDivides(3, 8), Not(IsOk()));
}

}  // namespace
}  // namespace muster
