// Trainings of one worker in stages, and what they cost.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/task/local_training.h"
#include "worker/session/session_messages.h"
#include "worker/task/pipeline_dry_run.h"
#include "worker/task/worker_task.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kTraining[] = R"pb(
  model {
    name: "mlp"
    input_shape: [ 16 ]
    layer {
      name: "hidden"
      type: "dense"
      attr { name: "units" i: 8 }
    }
    layer {
      name: "logits"
      type: "dense"
      attr { name: "units" i: 4 }
      device: "ref:5"
    }
    layer { name: "loss" type: "softmax_cross_entropy" device: "ref:5" }
    pipeline { micro_batches: 4 }
  }
  input {
    type: "synthetic"
    batch_size: 16
    synthetic_examples: 320
    synthetic_test_examples: 64
    synthetic_classes: 4
  }
  optimizer {
    name: "sgd"
    attr { name: "learning_rate" f: 0.1 }
  }
  stop { steps: 20 }
)pb";

class PipelinedTrainingTest : public LocalTraining {
 protected:
  std::string Train(const std::vector<std::string>& overrides,
                    int num_devices = 0) {
    const std::string train_dir = NewTrainDir("pipeline");
    auto options = MakeOptions(kTraining, overrides, train_dir);
    EXPECT_THAT(options, IsOk());
    options->device_choice.num_devices = num_devices;
    const auto task = CreateTask(*options);
    EXPECT_THAT(task, IsOk());
    if (task.ok()) {
      EXPECT_EQ((*task)->Run(), kExitDone);
    }
    return ReadAll(train_dir + "/ckpt-000000000020/parameters.safetensors");
  }

  absl::StatusOr<std::string> DryRun(
      const std::vector<std::string>& overrides = {}) {
    const auto options = MakeOptions(kTraining, overrides, "");
    EXPECT_THAT(options, IsOk());
    PipelineDryRun run;
    run.training = options->training;
    run.device_choice = options->device_choice;
    run.reporter = options->reporter;
    return RunPipelineDryRun(run);
  }
};

TEST_F(PipelinedTrainingTest, IsTheTrainingOfWholeBatches) {
  const std::string pipelined = Train({});
  EXPECT_THAT(Lines(), Contains(HasSubstr(
                           "pipeline: 4 micro-batches of 4 rows; ref:0 "
                           "computes hidden, ref:5 computes logits to loss")));
  EXPECT_FALSE(pipelined.empty());
  EXPECT_EQ(pipelined, Train({"model.pipeline.micro_batches=0"}));
}

TEST_F(PipelinedTrainingTest, EachTowerHasStages) {
  EXPECT_EQ(Train({"input.batch_size=8"}, 2),
            Train({"input.batch_size=8", "model.pipeline.micro_batches=0"}, 2));
}

TEST_F(PipelinedTrainingTest, ADryRunSaysWhatStagesCost) {
  const auto table = DryRun();
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(*table, AllOf(HasSubstr("4 micro-batches of 4 rows"),
                            HasSubstr("bubble in theory: 0.200"),
                            HasSubstr("logits to loss")));
}

TEST_F(PipelinedTrainingTest, ADryRunWantsAPipeline) {
  EXPECT_THAT(DryRun({"model.pipeline.micro_batches=0"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--set=model.pipeline.micro_batches=8")));
}

}  // namespace
}  // namespace muster
