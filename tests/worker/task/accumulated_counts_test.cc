// What a training with gradient.accumulate_batches counts: updates, of four
// batches each, and never batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "tests/common/summary/read_events.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/task/local_training.h"
#include "worker/session/session_messages.h"
#include "worker/task/worker_task.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Pair;
using ::testing::Pointwise;

constexpr char kTraining[] = R"pb(
  model {
    name: "mlp"
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
    batch_size: 4
    synthetic_examples: 320
    synthetic_test_examples: 64
    synthetic_classes: 4
  }
  gradient { accumulate_batches: 4 }
  optimizer {
    name: "momentum"
    attr { name: "learning_rate" f: 0.1 }
    schedule {
      name: "exponential"
      decay_steps: 10
      decay_rate: 0.5
      staircase: true
    }
  }
  evaluation { every_steps: 10 }
  checkpoint { every_steps: 30 keep: 9 }
  summary { every_steps: 10 }
  stop { steps: 40 }
  seed: 3
)pb";

// A divided batch sums the same gradients in another order.
constexpr float kTolerance = 1e-5f;

// The parameter: the mode of the steps.
class AccumulatedCountsTest
    : public LocalTraining,
      public ::testing::WithParamInterface<const char*> {
 protected:
  std::string Train(std::vector<std::string> overrides = {}) {
    const std::string train_dir = NewTrainDir("accumulated");
    overrides.emplace_back(GetParam());
    const auto options = MakeOptions(kTraining, overrides, train_dir);
    EXPECT_THAT(options, IsOk());
    const auto task = CreateTask(*options);
    EXPECT_THAT(task, IsOk());
    if (!task.ok()) return train_dir;
    EXPECT_EQ((*task)->Run(), kExitDone);
    return train_dir;
  }

  // The values of the parameters after 40 updates.
  static std::vector<float> Values(const std::string& train_dir) {
    const std::string bytes =
        ReadAll(train_dir + "/ckpt-000000000040/parameters.safetensors");
    uint64_t header = 0;
    if (bytes.size() < sizeof(header)) return {};
    std::memcpy(&header, bytes.data(), sizeof(header));
    const size_t begin = sizeof(header) + header;
    std::vector<float> values((bytes.size() - begin) / sizeof(float));
    std::memcpy(values.data(), bytes.data() + begin,
                values.size() * sizeof(float));
    return values;
  }

  // The rate of the next update, by the step of its point.
  static std::map<int64_t, float> Rates(const std::string& train_dir) {
    std::map<int64_t, float> rates;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             train_dir + "/summaries")) {
      if (!entry.is_regular_file()) continue;
      for (const Event& event : ReadEvents(ReadAll(entry.path()))) {
        for (const auto& value : event.summary().value()) {
          if (value.tag() != "learning_rate") continue;
          rates[event.step()] = value.tensor().float_val(0);
        }
      }
    }
    return rates;
  }
};

TEST_P(AccumulatedCountsTest, StopCountsUpdates) {
  const auto result = ReadResult(Train());
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("global_step")->text, "40");
  EXPECT_EQ(result->Find("examples")->text, absl::StrCat(40 * 4 * 4));
}

TEST_P(AccumulatedCountsTest, ScheduleCountsUpdates) {
  const std::string accumulated = Train();
  const std::string whole =
      Train({"gradient.accumulate_batches=1", "input.batch_size=16"});
  EXPECT_THAT(Values(accumulated),
              Pointwise(::testing::FloatNear(kTolerance), Values(whole)));
  EXPECT_EQ(Values(whole).size(), 16 * 4 + 4);
}

TEST_P(AccumulatedCountsTest, SummariesCountUpdates) {
  EXPECT_THAT(Rates(Train()),
              ElementsAre(Pair(10, 0.05f), Pair(20, 0.025f), Pair(30, 0.0125f),
                          Pair(40, 0.00625f)));
}

TEST_P(AccumulatedCountsTest, EvaluationsAndCheckpointsCountUpdates) {
  const std::string train_dir = Train();
  PosixFileSystem files;
  // One that is due while another is written comes after it.
  EXPECT_THAT(ListCheckpoints(&files, train_dir),
              IsOkAndHolds(AllOf(Contains(40), Each(AnyOf(0, Ge(30))))));
  // The last one is that of the end.
  std::vector<std::string> evaluations;
  for (const std::string& line : Lines()) {
    if (line.find(" test_loss=") == std::string::npos) continue;
    evaluations.push_back(line.substr(0, line.find(" test_")));
  }
  EXPECT_THAT(evaluations, ElementsAre("I step=10", "I step=20", "I step=30",
                                       "I step=40", "I step=40"));
}

INSTANTIATE_TEST_SUITE_P(
    Modes, AccumulatedCountsTest,
    ::testing::Values("replication=async", "replication.async.pull=IN_PLACE",
                      "replication.async.pipeline_depth=2", "replication=sync",
                      "replication.bounded_staleness.bound=1"));

}  // namespace
}  // namespace muster
