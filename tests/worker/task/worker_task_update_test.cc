// Whole trainings in one process whose parameters are updated on the device:
// the same bytes as where the shard updates them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/step/update_device.h"
#include "tests/worker/task/local_training.h"
#include "worker/session/session_messages.h"
#include "worker/task/worker_task.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// With a tensor of two blocks.
constexpr char kTraining[] = R"pb(
  model {
    name: "mlp"
    input_shape: [ 16 ]
    layer {
      name: "hidden"
      type: "dense"
      attr { name: "units" i: 4099 }
    }
    layer { name: "active" type: "relu" }
    layer {
      name: "logits"
      type: "dense"
      attr { name: "units" i: 4 }
    }
    layer { name: "loss" type: "softmax_cross_entropy" }
  }
  input {
    type: "synthetic"
    batch_size: 8
    synthetic_examples: 64
    synthetic_test_examples: 16
    synthetic_classes: 4
  }
  optimizer { name: "momentum" }
  seed: 3
)pb";

constexpr char kOff[] = "compute.update_on_device=false";

class WorkerTaskUpdateTest : public LocalTraining {
 protected:
  int Run(const std::string& train_dir, int64_t steps,
          std::vector<std::string> overrides) {
    overrides.push_back(absl::StrCat("stop.steps=", steps));
    auto options = MakeOptions(kTraining, overrides, train_dir);
    EXPECT_THAT(options, IsOk());
    if (!options.ok()) return -1;
    options->device_choice.device = kUpdateDevice;
    const auto task = CreateTask(*options);
    EXPECT_THAT(task, IsOk());
    return task.ok() ? (*task)->Run() : -1;
  }

  static std::string Checkpoint(const std::string& train_dir, int64_t step) {
    const std::string folder =
        absl::StrFormat("%s/ckpt-%012d/", train_dir, step);
    const std::string parameters = ReadAll(folder + "parameters.safetensors");
    EXPECT_NE(parameters, "") << folder;
    return parameters + ReadAll(folder + "slots.safetensors");
  }

  // The checkpoint that a training of `steps` saves at its end.
  std::string Train(int64_t steps, const std::vector<std::string>& overrides) {
    const std::string train_dir = NewTrainDir("update");
    EXPECT_EQ(Run(train_dir, steps, overrides), kExitDone);
    return Checkpoint(train_dir, steps);
  }

  // That a training is the same on the device, and is on it.
  void ExpectSame(std::vector<std::string> overrides) {
    const std::string wanted = Train(5, With(overrides, kOff));
    EXPECT_THAT(Lines(), Not(Contains(HasSubstr("updated there"))));
    EXPECT_TRUE(Train(5, overrides) == wanted);
    EXPECT_THAT(Lines(),
                Contains(absl::StrCat("I parameters stay on ", kUpdateDevice,
                                      ", and are updated there")));
  }

  static std::vector<std::string> With(std::vector<std::string> overrides,
                                       const std::string& more) {
    overrides.push_back(more);
    return overrides;
  }
};

class EachRuleTest : public WorkerTaskUpdateTest,
                     public ::testing::WithParamInterface<std::string> {};

TEST_P(EachRuleTest, SavesTheBytesOfTheHost) {
  ExpectSame({"optimizer.name=" + GetParam()});
}

INSTANTIATE_TEST_SUITE_P(Rules, EachRuleTest,
                         ::testing::Values("sgd", "momentum", "nesterov",
                                           "adagrad", "rmsprop", "adam",
                                           "adamw", "ftrl"),
                         [](const auto& info) { return info.param; });

TEST_F(WorkerTaskUpdateTest, ScheduledAndStalenessScaledRatesAreTheSame) {
  ExpectSame({"optimizer.name=adam", "optimizer.schedule.name=cosine",
              "optimizer.schedule.warmup_steps=2",
              "replication.async.staleness_scaled_learning_rate=true"});
}

TEST_F(WorkerTaskUpdateTest, PlainStepsGiveTheSame) {
  ExpectSame({"optimizer.name=adam", "compute.cuda_graphs=false"});
}

TEST_F(WorkerTaskUpdateTest, SavesAndEvaluationsInBetweenChangeNothing) {
  ExpectSame({"checkpoint.every_steps=2", "evaluation.every_steps=1"});
}

TEST_F(WorkerTaskUpdateTest, InPlaceIsOnTheDeviceThen) {
  ExpectSame({"replication.async.pull=IN_PLACE"});
  EXPECT_THAT(Lines(), Not(Contains(HasSubstr("not possible"))));
}

TEST_F(WorkerTaskUpdateTest, ARestoredTrainingGoesOn) {
  const std::vector<std::string> adam = {"optimizer.name=adam"};
  const std::string wanted = Train(7, With(adam, kOff));
  const std::string train_dir = NewTrainDir("restore");
  EXPECT_EQ(Run(train_dir, 3, adam), kExitDone);
  EXPECT_EQ(Run(train_dir, 5, With(adam, kOff)), kExitDone);
  EXPECT_EQ(Run(train_dir, 7, adam), kExitDone);
  EXPECT_TRUE(Checkpoint(train_dir, 7) == wanted);
}

// log_tensors prints parameters and gradients.
TEST_F(WorkerTaskUpdateTest, HooksSeeTheSameTensors) {
  const std::vector<std::string> logs = {"log_tensors.every_steps=2"};
  const auto logged = [&](const std::vector<std::string>& overrides) {
    const size_t before = Lines().size();
    Train(6, overrides);
    std::vector<std::string> lines;
    for (size_t i = before; i < Lines().size(); ++i) {
      if (absl::StartsWith(Lines()[i], "I tensor "))
        lines.push_back(Lines()[i]);
    }
    return lines;
  };
  const std::vector<std::string> wanted = logged(With(logs, kOff));
  EXPECT_EQ(wanted.size(), 4 * 3);
  EXPECT_EQ(logged(logs), wanted);
}

TEST_F(WorkerTaskUpdateTest, TheSummariesAreTheSame) {
  const auto summaries = [&](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = {"summary.every_steps=2",
                                          "summary.histograms_every_steps=3"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return Train(6, overrides);
  };
  EXPECT_TRUE(summaries({}) == summaries({kOff}));
}

TEST_F(WorkerTaskUpdateTest, SaysWhyItCannotBeIfItWasAskedFor) {
  const std::string asked = "compute.update_on_device=true";
  Train(2, {"gradient.clip.by_norm=1"});
  EXPECT_THAT(Lines(), Not(Contains(HasSubstr("update_on_device"))));
  Train(2, {"gradient.clip.by_norm=1", asked});
  EXPECT_THAT(Lines(), Contains(AllOf(HasSubstr("compute.update_on_device"),
                                      HasSubstr("gradient.clip"))));
}

}  // namespace
}  // namespace muster
