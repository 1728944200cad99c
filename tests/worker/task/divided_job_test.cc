// Jobs of two workers and two ps tasks in this process: workers whose models
// are divided among devices, beside others.
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/task/local_ps_tasks.h"
#include "tests/worker/task/local_training.h"
#include "worker/session/session_messages.h"
#include "worker/task/worker_task.h"

namespace muster {
namespace {

constexpr int kTasks = 2;

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
      name: "dropped"
      type: "dropout"
      attr { name: "rate" f: 0.25 }
    }
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
    synthetic_examples: 320
    synthetic_test_examples: 64
    synthetic_classes: 4
  }
  optimizer {
    name: "momentum"
    attr { name: "learning_rate" f: 0.1 }
  }
  seed: 3
)pb";

using Overrides = std::vector<std::string>;

const Overrides kWhole = {};
// Every part of `hidden` sees whole rows, so no sum is another one.
const Overrides kDivided = {
    "model.hidden.split.parts=2", "model.hidden.split.devices=ref:0,ref:1",
    "model.device_rule={pattern: 'logits|loss' device: 'ref:1'}"};
// Sums of the inputs of `logits` are made in two parts.
const Overrides kPair = {
    "model.hidden.split.parts=2", "model.hidden.split.devices=ref:0,ref:1",
    "model.logits.split.parts=2", "model.logits.split.by=INPUTS"};
const Overrides kPipelined = {
    "model.device_rule={pattern: 'logits|loss' device: 'ref:1'}",
    "model.pipeline.micro_batches=4"};

class DividedJobTest : public LocalTraining,
                       public testing::WithParamInterface<std::string> {
 protected:
  // Trains to `steps` with two workers, each with the overrides of its own.
  void Train(const std::string& train_dir, int steps, const Overrides& first,
             const Overrides& second) {
    LocalPsTasks ps(kTasks, kTasks);
    std::thread other([&] { RunWorker(1, "", steps, second, &ps); });
    RunWorker(0, train_dir, steps, first, &ps);
    other.join();
  }
  std::string TrainAnew(const Overrides& first, const Overrides& second) {
    const std::string train_dir = NewTrainDir("job");
    Train(train_dir, 20, first, second);
    return train_dir;
  }

  static std::string State(const std::string& train_dir) {
    const std::string checkpoint = train_dir + "/ckpt-000000000020/";
    const std::string parameters =
        ReadAll(checkpoint + "parameters.safetensors");
    EXPECT_FALSE(parameters.empty());
    return parameters + ReadAll(checkpoint + "slots.safetensors");
  }

 private:
  static ClusterSpec Cluster(bool all_reduce) {
    ClusterDef def;
    for (const std::string job : {"ps", "worker"}) {
      if (all_reduce && job == "ps") continue;
      JobDef* const tasks = def.add_job();
      tasks->set_name(job);
      for (int i = 0; i < kTasks; ++i) {
        (*tasks->mutable_tasks())[i] =
            absl::StrCat("127.0.0.1:", job == "ps" ? 1 : 11, i);
      }
    }
    auto cluster = ClusterSpec::Create(def);
    EXPECT_THAT(cluster, IsOk());
    if (all_reduce) cluster = cluster->ForAllReduce();
    EXPECT_THAT(cluster, IsOk());
    return *cluster;
  }

  void RunWorker(int index, const std::string& train_dir, int steps,
                 Overrides overrides, LocalPsTasks* ps) {
    overrides.push_back(absl::StrCat("replication=", GetParam()));
    overrides.push_back(absl::StrCat("stop.steps=", steps));
    auto options = MakeOptions(kTraining, overrides, train_dir);
    ASSERT_THAT(options, IsOk());
    options->cluster = Cluster(GetParam() == "all_reduce");
    options->self.set_index(index);
    options->incarnation = index + 1;
    const auto task = WorkerTask::Create(*options, ps->MakeLinks());
    ASSERT_THAT(task, IsOk());
    EXPECT_EQ((*task)->Run(), kExitDone);
  }
};

TEST_P(DividedJobTest, DividedWorkersGiveTheBitsOfWholeOnes) {
  const std::string whole = State(TrainAnew(kWhole, kWhole));
  EXPECT_EQ(State(TrainAnew(kDivided, kDivided)), whole);
  EXPECT_EQ(State(TrainAnew(kWhole, kDivided)), whole);
  EXPECT_EQ(State(TrainAnew(kPipelined, kDivided)), whole);
}

TEST_P(DividedJobTest, AWorkerWithAPairTrainsBesideAWholeOne) {
  const std::string pair = State(TrainAnew(kPair, kWhole));
  EXPECT_EQ(State(TrainAnew(kWhole, kPair)).size(), pair.size());
}

TEST_P(DividedJobTest, ACheckpointOfOneKindIsTheOthers) {
  const std::string whole = State(TrainAnew(kWhole, kWhole));
  for (const auto& [first, second] :
       {std::pair(kDivided, kWhole), {kWhole, kPipelined}}) {
    const std::string train_dir = NewTrainDir("job");
    Train(train_dir, 10, first, first);
    Train(train_dir, 20, second, second);
    EXPECT_EQ(State(train_dir), whole);
  }
}

INSTANTIATE_TEST_SUITE_P(Replication, DividedJobTest,
                         testing::Values("sync", "all_reduce"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster
