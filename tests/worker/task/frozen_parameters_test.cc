// Whole trainings in one process, parts of whose models are frozen.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/safetensors_reader.h"
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

constexpr int64_t kSteps = 5;

// Frozen: what is before the first layer that is trained, a layer between two,
// and one bias. With a tensor of two blocks.
constexpr char kTraining[] = R"pb(
  model {
    name: "tuned"
    input_shape: [ 2, 6, 6 ]
    block {
      name: "conv_norm"
      layer {
        name: "conv"
        type: "conv2d"
        attr { name: "filters" i: 4 }
        attr { name: "kernel" i: 3 }
        attr { name: "l2" f: 0.5 }
      }
      layer { name: "norm" type: "batch_norm" }
      layer { name: "relu" type: "relu" }
    }
    layer { name: "stem" type: "conv_norm" }
    layer { name: "flatten" type: "flatten" }
    layer {
      name: "wide"
      type: "dense"
      attr { name: "units" i: 1100 }
      attr { name: "l2" f: 0.25 }
    }
    layer { name: "act" type: "tanh" }
    layer {
      name: "between"
      type: "dense"
      attr { name: "units" i: 5 }
      attr { name: "bias_value" f: 0.5 }
    }
    layer { name: "norm" type: "batch_norm" }
    layer {
      name: "logits"
      type: "dense"
      attr { name: "units" i: 3 }
    }
    layer { name: "loss" type: "softmax_cross_entropy" }
  }
  input {
    type: "synthetic"
    batch_size: 4
    synthetic_examples: 64
    synthetic_test_examples: 16
    synthetic_classes: 3
  }
  optimizer { name: "sgd" }
  stop { steps: 5 }
  seed: 3
)pb";

constexpr char kStem[] = "model.stem.freeze=true";
constexpr char kPatterns[] = "model.freeze_pattern=between,wide/bias";

// By name, the bytes of a file's tensors.
using Tensors = std::map<std::string, std::string>;

bool IsFrozen(const std::string& name) {
  return absl::StartsWith(name, "stem/") ||
         absl::StartsWith(name, "between/") || name == "wide/bias";
}

class FrozenParametersTest : public LocalTraining {
 protected:
  int Run(const std::string& train_dir, std::vector<std::string> overrides,
          const std::string& init_from = "") {
    auto options = MakeOptions(kTraining, overrides, train_dir);
    EXPECT_THAT(options, IsOk());
    if (!options.ok()) return -1;
    options->init.path = init_from;
    const auto task = CreateTask(*options);
    EXPECT_THAT(task, IsOk());
    return task.ok() ? (*task)->Run() : -1;
  }

  static std::string FileOf(const std::string& train_dir, int64_t step,
                            const std::string& name) {
    return absl::StrFormat("%s/ckpt-%012d/%s.safetensors", train_dir, step,
                           name);
  }

  static Tensors Read(const std::string& path) {
    PosixFileSystem file_system;
    const auto reader = SafetensorsReader::Open(&file_system, path);
    EXPECT_THAT(reader, IsOk());
    Tensors tensors;
    if (!reader.ok()) return tensors;
    for (const SafetensorsEntry& entry : (*reader)->entries()) {
      const int64_t elements = entry.shape.num_elements();
      const bool is_count = entry.dtype == INT64;
      std::string bytes(elements * (is_count ? 8 : 4), '\0');
      EXPECT_THAT((*reader)->Read(entry.name, 0, elements, bytes.data()),
                  IsOk());
      tensors[entry.name] = bytes;
    }
    return tensors;
  }

  // That after some steps the frozen parameters are the bits of before, and no
  // other is.
  void ExpectKeepsTheFrozen(std::vector<std::string> overrides) {
    const std::string train_dir = NewTrainDir("frozen");
    overrides.push_back(kStem);
    overrides.push_back(kPatterns);
    ASSERT_EQ(Run(train_dir, overrides), kExitDone);
    const Tensors before = Read(FileOf(train_dir, 0, "parameters"));
    const Tensors after = Read(FileOf(train_dir, kSteps, "parameters"));
    ASSERT_EQ(before.size(), 16);
    ASSERT_EQ(after.size(), before.size());
    for (const auto& [name, bytes] : before) {
      EXPECT_EQ(after.at(name) == bytes, IsFrozen(name)) << name;
    }
    for (const auto& [name, bytes] : Read(FileOf(train_dir, kSteps, "slots"))) {
      EXPECT_FALSE(IsFrozen(name.substr(0, name.rfind('/')))) << name;
    }
  }
};

class FrozenRuleTest : public FrozenParametersTest,
                       public ::testing::WithParamInterface<std::string> {};

TEST_P(FrozenRuleTest, KeepsTheFrozenBits) {
  std::vector<std::string> overrides = {"optimizer=" + GetParam()};
  if (GetParam() == "adamw") {
    overrides.push_back("optimizer.adamw.weight_decay=0.1");
  }
  ExpectKeepsTheFrozen(overrides);
}

INSTANTIATE_TEST_SUITE_P(Rules, FrozenRuleTest,
                         ::testing::Values("sgd", "momentum", "nesterov",
                                           "adagrad", "rmsprop", "adam",
                                           "adamw", "ftrl"),
                         [](const auto& info) { return info.param; });

class FrozenModeTest
    : public FrozenParametersTest,
      public ::testing::WithParamInterface<std::vector<std::string>> {};

TEST_P(FrozenModeTest, KeepsTheFrozenBits) {
  std::vector<std::string> overrides = GetParam();
  overrides.push_back("optimizer=adam");
  ExpectKeepsTheFrozen(overrides);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, FrozenModeTest,
    ::testing::Values(
        std::vector<std::string>{"replication=sync"},
        std::vector<std::string>{"replication=bounded_staleness"},
        std::vector<std::string>{"replication.async.pipeline_depth=2"},
        std::vector<std::string>{"replication.async.pull=IN_PLACE"},
        std::vector<std::string>{"gradient.codec=bf16", "pull.codec=bf16",
                                 "gradient.error_feedback=true"},
        std::vector<std::string>{"replication=sync", "gradient.codec=fp16",
                                 "gradient.clip.by_global_norm=1"},
        std::vector<std::string>{"gradient.accumulate_batches=2"}));

TEST_F(FrozenParametersTest, AreThoseOfAnotherRunThatWasNotFrozen) {
  const std::string first = NewTrainDir("first");
  ASSERT_EQ(Run(first, {"optimizer=adam"}), kExitDone);
  const std::string file = FileOf(first, kSteps, "parameters");
  const std::string tuned = NewTrainDir("tuned");
  ASSERT_EQ(Run(tuned, {kStem, kPatterns, "seed=4"}, file), kExitDone);
  const Tensors given = Read(file);
  const Tensors begun = Read(FileOf(tuned, 0, "parameters"));
  EXPECT_TRUE(begun == given);
  for (const auto& [name, bytes] : Read(FileOf(tuned, kSteps, "parameters"))) {
    EXPECT_EQ(bytes == given.at(name), IsFrozen(name)) << name;
  }
}

TEST_F(FrozenParametersTest, ATrainDirGoesOnWithTheSameOnes) {
  const std::string train_dir = NewTrainDir("resume");
  ASSERT_EQ(Run(train_dir, {kStem, "stop.steps=2"}), kExitDone);
  EXPECT_NE(Run(train_dir, {kStem, kPatterns}), kExitDone);
  EXPECT_THAT(Lines(),
              Contains(AllOf(HasSubstr("(frozen)"), HasSubstr("--init_from"))));
  EXPECT_EQ(Run(train_dir, {kStem}), kExitDone);
  const Tensors before = Read(FileOf(train_dir, 0, "parameters"));
  const Tensors after = Read(FileOf(train_dir, kSteps, "parameters"));
  EXPECT_TRUE(after.at("stem/conv/weights") == before.at("stem/conv/weights"));
}

}  // namespace
}  // namespace muster
