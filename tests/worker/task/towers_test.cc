// Whole trainings in one process with several towers and accumulated batches.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/task/local_training.h"
#include "worker/session/session_messages.h"
#include "worker/task/worker_task.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// Neither batch norm nor dropout: with them a divided batch is another problem.
constexpr char kTraining[] = R"pb(
  model {
    name: "mlp"
    input_shape: [ 16 ]
    layer {
      name: "hidden"
      type: "dense"
      attr { name: "units" i: 8 }
    }
    layer { name: "active" type: "tanh" }
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
    name: "sgd"
    attr { name: "learning_rate" f: 0.1 }
  }
  stop { steps: 40 }
  seed: 3
)pb";

// A divided batch sums the same gradients in another order: each step is off by
// a few 2^-24 of itself, and 40 steps of a smooth problem do not blow that up.
constexpr float kTolerance = 1e-5f;

// One training, in a folder of its own.
class TowersTest : public LocalTraining {
 protected:
  struct Run {
    std::vector<std::string> overrides = {};
    int num_devices = 0;
    std::vector<std::string> devices = {};
  };

  absl::StatusOr<std::unique_ptr<WorkerTask>> Create(
      const Run& run, const std::string& train_dir) {
    auto options = MakeOptions(kTraining, run.overrides, train_dir);
    if (!options.ok()) return options.status();
    if (!run.devices.empty()) options->device_choice.device = "auto";
    options->device_choice.devices = run.devices;
    options->device_choice.num_devices = run.num_devices;
    return CreateTask(*options);
  }

  std::string Train(const Run& run, std::string train_dir = "") {
    if (train_dir.empty()) train_dir = NewTrainDir("towers");
    const auto task = Create(run, train_dir);
    EXPECT_THAT(task, IsOk());
    if (!task.ok()) return train_dir;
    EXPECT_EQ((*task)->Run(), kExitDone);
    return train_dir;
  }

  // The bytes of the parameters after 40 steps.
  std::string Parameters(const std::string& train_dir) {
    const std::string bytes =
        ReadAll(train_dir + "/ckpt-000000000040/parameters.safetensors");
    EXPECT_FALSE(bytes.empty());
    return bytes;
  }

  // Their values: what follows the header.
  std::vector<float> Values(const std::string& train_dir) {
    const std::string bytes = Parameters(train_dir);
    uint64_t header = 0;
    if (bytes.size() < sizeof(header)) return {};
    std::memcpy(&header, bytes.data(), sizeof(header));
    const size_t begin = sizeof(header) + header;
    std::vector<float> values((bytes.size() - begin) / sizeof(float));
    std::memcpy(values.data(), bytes.data() + begin,
                values.size() * sizeof(float));
    return values;
  }

  void ExpectNear(const std::string& found, const std::string& wanted) {
    const std::vector<float> a = Values(found);
    const std::vector<float> b = Values(wanted);
    ASSERT_EQ(a.size(), b.size());
    ASSERT_EQ(a.size(), 16 * 8 + 8 + 8 * 4 + 4);
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_NEAR(a[i], b[i], kTolerance) << "element " << i;
    }
  }

  std::string Result(const std::string& train_dir, const std::string& field) {
    const auto result = ReadResult(train_dir);
    EXPECT_THAT(result, IsOk());
    return result.ok() ? result->Find(field)->text : "";
  }
};

TEST_F(TowersTest, AllReadTheParametersInPlace) {
  EXPECT_EQ(Parameters(Train({{"replication.async.pull=IN_PLACE"}, 2})),
            Parameters(Train({{}, 2})));
}

TEST_F(TowersTest, WeightsOfRowsAreOverAllBatchesOfAStep) {
  const std::string weight = "class_weight={class: '2' weight: 20}";
  const std::string one = Train({{weight}});
  ExpectNear(
      Train({{weight, "input.batch_size=4", "gradient.accumulate_batches=4"}}),
      one);
  ExpectNear(Train({{weight, "input.batch_size=8"}, 2}), one);
}

TEST_F(TowersTest, TwoTowersEqualOneWithTwiceTheBatch) {
  const std::string one = Train({});
  const std::string two = Train({{"input.batch_size=8"}, 2});
  ExpectNear(two, one);
  EXPECT_EQ(Result(two, "examples"), Result(one, "examples"));
  EXPECT_EQ(Result(two, "rows_per_push"), "16");
  EXPECT_EQ(Result(two, "batch_size"), "8");
  EXPECT_THAT(Lines(), Contains(AllOf(HasSubstr("2 towers on ref:0, ref:1"),
                                      HasSubstr("averaged on ref:0"))));
}

TEST_F(TowersTest, PipelinedTowersEqualOnePipelinedTower) {
  const std::string pipeline = "replication.async.pipeline_depth=2";
  const std::string one = Train({{pipeline}});
  ExpectNear(Train({{pipeline, "input.batch_size=8"}, 2}), one);
  EXPECT_NE(Parameters(one), Parameters(Train({})));
}

TEST_F(TowersTest, AccumulatedBatchesEqualOneLargeBatch) {
  const std::string one = Train({});
  const std::string four =
      Train({{"input.batch_size=4", "gradient.accumulate_batches=4"}});
  ExpectNear(four, one);
  EXPECT_EQ(Result(four, "examples"), Result(one, "examples"));
  EXPECT_EQ(Result(four, "accumulate_batches"), "4");
}

TEST_F(TowersTest, ADividedGlobalBatchIsThatBatch) {
  const std::string divided =
      Train({{"input.batch_size=0", "input.global_batch_size=16",
              "gradient.accumulate_batches=2"},
             2});
  const std::string by_tower =
      Train({{"input.batch_size=4", "gradient.accumulate_batches=2"}, 2});
  EXPECT_EQ(Parameters(divided), Parameters(by_tower));
  ExpectNear(divided, Train({}));
}

TEST_F(TowersTest, GoesOnAfterARestartAsIfNeverStopped) {
  Run run = {{"input.batch_size=4", "gradient.accumulate_batches=2"}, 2};
  const std::string whole = Train(run);
  Run first = run;
  first.overrides.push_back("stop.steps=17");
  const std::string parts = Train(first);
  Train(run, parts);
  EXPECT_EQ(Result(parts, "start_step"), "17");
  EXPECT_EQ(Parameters(parts), Parameters(whole));
}

TEST_F(TowersTest, AnyControllerGivesTheSameBits) {
  const std::string first = Train({{"input.batch_size=8"}, 2});
  const std::string second =
      Train({{"input.batch_size=8", "tower.controller_device=ref:1"}, 2});
  const std::string other =
      Train({{"input.batch_size=8", "tower.controller_device=ref:5"}, 2});
  EXPECT_EQ(Parameters(first), Parameters(second));
  EXPECT_EQ(Parameters(first), Parameters(other));
}

// Two towers, each with its layers on two devices, and one thread a device.
TEST_F(TowersTest, LayersOnSeveralDevicesGiveTheSameBits) {
  const std::string rule =
      "model.device_rule={pattern: 'logits|loss' device: '/device:REF:3'}";
  const std::string one = Train({{"input.batch_size=8"}, 2});
  const std::string divided = Train({{"input.batch_size=8", rule}, 2});
  EXPECT_EQ(Parameters(one), Parameters(divided));
  EXPECT_EQ(Result(one, "test_loss"), Result(divided, "test_loss"));
  EXPECT_THAT(Lines(), Contains(HasSubstr("2 towers on ref:0+ref:3, "
                                          "ref:1+ref:3")));
}

TEST_F(TowersTest, EveryReplicationModeTakesADividedModel) {
  for (const std::string mode :
       {"replication.async.pull=IN_PLACE", "replication.async.pipeline_depth=2",
        "replication=sync", "replication.bounded_staleness.bound=1",
        "gradient.codec=bf16", "gradient.clip.by_global_norm=0.1"}) {
    EXPECT_EQ(Parameters(Train({{mode}})),
              Parameters(Train({{mode, "model.loss.device=ref:1"}})))
        << mode;
  }
}

// Its parts are whole for everybody else: one that is not divided goes on.
TEST_F(TowersTest, ACheckpointOfADividedModelIsAnyModels) {
  const std::string half = "stop.steps=20";
  const std::string dir = Train(
      {{half, "model.hidden.split.parts=2",
        "model.hidden.split.devices=ref:0,ref:1", "model.loss.device=ref:1"}});
  Train({{}}, dir);
  EXPECT_EQ(Result(dir, "start_step"), "20");
  ExpectNear(dir, Train({}));
}

TEST_F(TowersTest, EpochsCountTheRowsOfAllTowers) {
  const std::string train_dir =
      Train({{"input.batch_size=8", "stop.steps=0", "stop.epochs=2",
              "gradient.accumulate_batches=2"},
             2});
  EXPECT_EQ(Result(train_dir, "global_step"), "20");  // 2 * 320 / 32.
  EXPECT_EQ(Result(train_dir, "examples"), "640");
}

TEST_F(TowersTest, WhatCannotBeIsRefusedByName) {
  const struct {
    Run run;
    std::string message;
  } cases[] = {
      {{{}, 0, {"ref:0", "ref:4711"}}, "there is no device 'ref:4711'"},
      {{{"tower.controller_device=ref:4711"}, 2},
       "tower.controller_device=ref:4711: there is no device 'ref:4711'"},
      {{{"model.hidden.device=ref:4711"}, 1},
       "layer 'hidden': device=ref:4711: there is no device 'ref:4711'"},
      {{{"tower.controller_device=tpu"}, 2},
       "tower.controller_device=tpu: there is no device 'tpu'"},
      {{{"input.batch_size=0", "input.global_batch_size=33"}, 2},
       "input.global_batch_size: 33 rows cannot be divided evenly"},
      {{{"input.batch_size=200"}, 2}, "the data set has 320"},
  };
  for (const auto& refused : cases) {
    EXPECT_THAT(Create(refused.run, "").status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(refused.message)));
  }
}

}  // namespace
}  // namespace muster
