// A whole worker in this process, with the ps of --standalone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/json.h"
#include "ps_server/coordination_server.h"
#include "ps_server/shard_server.h"
#include "tests/testing/status_matchers.h"
#include "worker/session_messages.h"
#include "worker/training_spec.h"
#include "worker/worker_task.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

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
  seed: 3
)pb";

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class StandaloneTest : public ::testing::Test {
 protected:
  // A new folder below the test's own.
  std::string NewTrainDir(const std::string& name) {
    std::string path = testing::TempDir() + "/" + name + "XXXXXX";
    return mkdtemp(path.data());
  }

  int Train(const std::string& train_dir, int64_t steps,
            std::vector<std::string> overrides = {}) {
    overrides.push_back(absl::StrCat("stop.steps=", steps));
    auto training = ParseTrainingSpec(kTraining, "test", overrides);
    EXPECT_THAT(training, IsOk());
    if (!training.ok()) return -1;
    WorkerOptions options;
    options.self.set_job("worker");
    options.training = *training;
    options.train_dir = train_dir;
    options.device = "ref";
    options.clock = &clock_;
    options.start_time = clock_.Now();
    options.progress.every = absl::ZeroDuration();
    options.write_progress = [this](absl::string_view line) { Say(line); };
    options.say = [this](bool, absl::string_view line) { Say(line); };
    auto task = WorkerTask::Create(options, LocalLinks());
    EXPECT_THAT(task, IsOk());
    return task.ok() ? (*task)->Run() : -1;
  }

  std::vector<std::string> Lines() {
    absl::MutexLock lock(&mu_);
    return lines_;
  }

 private:
  WorkerLinks LocalLinks() {
    ShardServer::Options shard;
    shard.shard.incarnation = ++incarnation_;
    shard.clock = &clock_;
    CoordinationServer::Options coordination;
    coordination.clock = &clock_;
    WorkerLinks links;
    links.shards.push_back(std::make_unique<ShardServer>(shard));
    links.coordination = std::make_unique<CoordinationServer>(coordination);
    return links;
  }
  void Say(absl::string_view line) {
    absl::MutexLock lock(&mu_);
    lines_.emplace_back(line);
  }

  const MonotonicClock clock_;
  uint64_t incarnation_ = 0;
  absl::Mutex mu_;
  std::vector<std::string> lines_;
};

TEST_F(StandaloneTest, TrainsAsWellWithEncodedGradients) {
  const auto train = [this](const std::string& codec) {
    const std::string train_dir = NewTrainDir("codec");
    EXPECT_EQ(Train(train_dir, 100, {"gradient.codec=" + codec}), kExitDone);
    const auto result = ParseJson(ReadAll(train_dir + "/result.json"));
    EXPECT_THAT(result, IsOk());
    return std::stod(result->Find("test_loss")->text);
  };
  const double plain = train("");
  const double encoded = train("bf16");
  EXPECT_NE(encoded, plain) << "nothing was encoded";
  // Each of the 100 updates is off by at most 2^-8 of itself.
  EXPECT_NEAR(encoded, plain, plain / 256 * 4);
}

TEST_F(StandaloneTest, TrainsToALowerLossAndWritesTheResult) {
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir, 100), kExitDone);
  const auto result = ParseJson(ReadAll(train_dir + "/result.json"));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("global_step")->text, "100");
  // Four classes: the loss of a guess is ln 4 = 1.39.
  EXPECT_LT(std::stod(result->Find("test_loss")->text), 0.7);
  EXPECT_GT(std::stod(result->Find("test_accuracy")->text), 0.9);
  EXPECT_EQ(result->Find("stop_reason")->text, "steps");
}

TEST_F(StandaloneTest, ResumedTrainingEqualsOneThatWasNotInterrupted) {
  const std::string whole = NewTrainDir("whole");
  const std::string parts = NewTrainDir("parts");
  ASSERT_EQ(Train(whole, 40), kExitDone);
  ASSERT_EQ(Train(parts, 20), kExitDone);
  ASSERT_EQ(Train(parts, 40), kExitDone);
  for (const char* file : {"parameters.safetensors", "slots.safetensors"}) {
    const std::string name = absl::StrCat("/ckpt-000000000040/", file);
    const std::string bytes = ReadAll(whole + name);
    EXPECT_FALSE(bytes.empty());
    EXPECT_EQ(bytes, ReadAll(parts + name)) << file;
  }
}

TEST_F(StandaloneTest, FinishedTrainingIsNotTrainedAgain) {
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir, 10), kExitDone);
  ASSERT_EQ(Train(train_dir, 10), kExitDone);
  EXPECT_THAT(Lines(), Contains(HasSubstr("restored ")));
}

TEST_F(StandaloneTest, CheckpointOfAnotherModelEndsItWithThree) {
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir, 10), kExitDone);
  EXPECT_EQ(Train(train_dir, 20, {"optimizer.name=adam"}), kExitBadCheckpoint);
}

TEST_F(StandaloneTest, StopsAfterWholeEpochs) {
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir, 0, {"stop.epochs=2"}), kExitDone);
  const auto result = ParseJson(ReadAll(train_dir + "/result.json"));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("global_step")->text, "40");  // 2 * 320 / 16.
}

}  // namespace
}  // namespace muster
