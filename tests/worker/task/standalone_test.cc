// A whole worker in this process, with the ps of --standalone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "common/base/read_file.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "common/cluster/cluster_spec.h"
#include "common/codec/codec.h"
#include "common/config/json.h"
#include "proto/cluster.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/task/local_training.h"
#include "worker/session/session_messages.h"
#include "worker/task/worker_task.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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

class StandaloneTest : public LocalTraining {
 protected:
  int Train(const std::string& train_dir, int64_t steps,
            std::vector<std::string> overrides = {}) {
    overrides.push_back(absl::StrCat("stop.steps=", steps));
    auto options = MakeOptions(kTraining, overrides, train_dir);
    EXPECT_THAT(options, IsOk());
    if (!options.ok()) return -1;
    options->profiled.count = profile_steps_;
    options->progress_every = absl::ZeroDuration();
    options->reporter =
        Reporter([this](Reporter::Level level, absl::string_view line) {
          reporter().Report(level, line);
          if (absl::StrContains(line, " steps_per_s=")) on_progress_();
        });
    const auto task = CreateTask(*options);
    EXPECT_THAT(task, IsOk());
    return task.ok() ? (*task)->Run() : -1;
  }

  static int64_t ResultStep(const std::string& train_dir) {
    const auto result = ReadResult(train_dir);
    EXPECT_THAT(result, IsOk());
    return result.ok() ? std::stoll(result->Find("global_step")->text) : -1;
  }

  int64_t profile_steps_ = 0;
  // Called after each line of progress: after a step.
  std::function<void()> on_progress_ = [] {};
};

TEST_F(StandaloneTest, TrainsAsWellWithEncodedGradients) {
  const auto train = [this](const std::vector<std::string>& settings) {
    const std::string train_dir = NewTrainDir("codec");
    EXPECT_EQ(Train(train_dir, 100, settings), kExitDone);
    const auto result = ReadResult(train_dir);
    EXPECT_THAT(result, IsOk());
    return std::stod(result->Find("test_loss")->text);
  };
  const double plain = train({});
  std::set<double> losses = {plain};
  for (const std::string& name : CodecRegistry::Names()) {
    const std::string codec = "gradient.codec=" + name;
    const double encoded = train({codec});
    const double fed_back = train({codec, "gradient.error_feedback=true"});
    // Each of the 100 updates is off by at most that much of itself.
    const double error = FindCodec(name).value()->relative_error();
    EXPECT_NEAR(encoded, plain, plain * error * 4) << name;
    EXPECT_NEAR(fed_back, plain, plain * error * 4) << name;
    // One worker is in every round, and is told so.
    EXPECT_EQ(
        train({codec, "gradient.error_feedback=true", "replication=sync"}),
        fed_back)
        << name;
    losses.insert({encoded, fed_back});
  }
  EXPECT_EQ(losses.size(), 1 + 2 * CodecRegistry::Names().size())
      << "a setting made no difference";
}

// A sweep compares them, whoever wrote them.
TEST_F(StandaloneTest, AFinishedRunThatIsStartedAgainKeepsItsFigures) {
  const std::string train_dir = NewTrainDir("again");
  ASSERT_EQ(Train(train_dir, 5), kExitDone);
  const auto text = ReadFile(train_dir + "/result.json");
  ASSERT_EQ(Train(train_dir, 5), kExitDone);
  EXPECT_EQ(ReadFile(train_dir + "/result.json"), text);
  ASSERT_EQ(Train(train_dir, 6), kExitDone);
  EXPECT_EQ(ReadResult(train_dir)->Find("start_step")->text, "5");
}

// 0 would be the best loss of a sweep.
TEST_F(StandaloneTest, AFinishedRunWithoutItsResultHasNoLossOfItsOwn) {
  const std::string train_dir = NewTrainDir("again");
  ASSERT_EQ(Train(train_dir, 5), kExitDone);
  EXPECT_EQ(ReadResult(train_dir)->Find("final_loss")->kind,
            JsonValue::Kind::kNumber);
  std::filesystem::remove(train_dir + "/result.json");
  ASSERT_EQ(Train(train_dir, 5), kExitDone);
  const auto result = ReadResult(train_dir);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("start_step")->text, "5");
  for (const char* const name : {"final_loss", "steps_per_s"}) {
    EXPECT_EQ(result->Find(name)->kind, JsonValue::Kind::kNull) << name;
  }
}

// One worker's updates come between its steps, wherever it reads them.
TEST_F(StandaloneTest, ParametersInPlaceGiveTheSameModel) {
  const auto train = [this](const std::vector<std::string>& settings) {
    const std::string train_dir = NewTrainDir("in_place");
    EXPECT_EQ(Train(train_dir, 20, settings), kExitDone);
    return ReadAll(train_dir + "/ckpt-000000000020/parameters.safetensors");
  };
  const std::string in_place = "replication.async.pull=IN_PLACE";
  const std::string consistent = train({});
  EXPECT_FALSE(consistent.empty());
  EXPECT_EQ(train({in_place}), consistent);
  EXPECT_EQ(train({in_place, "gradient.codec=bf16"}),
            train({"gradient.codec=bf16"}));
  // Then they are read while they are updated.
  EXPECT_NE(train({in_place, "replication.async.pipeline_depth=2"}), "");
  EXPECT_THAT(Lines(), Contains(HasSubstr("(pull: IN_PLACE)")));
  EXPECT_THAT(Lines(), Not(Contains(HasSubstr("not possible"))));
}

TEST_F(StandaloneTest, TrainsAsWellWithEncodedParameters) {
  const auto train = [this](const std::vector<std::string>& settings) {
    const std::string train_dir = NewTrainDir("pull");
    EXPECT_EQ(Train(train_dir, 100, settings), kExitDone);
    const auto result = ReadResult(train_dir);
    EXPECT_THAT(result, IsOk());
    return *result;
  };
  const auto loss = [](const JsonValue& result) {
    return std::stod(result.Find("test_loss")->text);
  };
  const JsonValue plain = train({});
  const JsonValue* const pulled = plain.Find("pull");
  EXPECT_EQ(pulled->Find("codec")->text, "");
  EXPECT_EQ(pulled->Find("bytes_received")->text,
            pulled->Find("bytes_as_float32")->text);
  for (const std::string& name : CodecRegistry::Names()) {
    const std::string codec = "pull.codec=" + name;
    const JsonValue encoded = train({codec});
    // Each of the 100 gradients is of parameters that are off by so much.
    const double error = FindCodec(name).value()->relative_error();
    EXPECT_NEAR(loss(encoded), loss(plain), loss(plain) * error * 4) << name;
    EXPECT_NE(loss(encoded), loss(plain)) << name;
    const JsonValue* const pull = encoded.Find("pull");
    EXPECT_EQ(pull->Find("codec")->text, name);
    EXPECT_EQ(pull->Find("bytes_as_float32")->text,
              pulled->Find("bytes_as_float32")->text);
    EXPECT_EQ(2 * std::stoll(pull->Find("bytes_received")->text),
              std::stoll(pull->Find("bytes_as_float32")->text));
    // The values of a round are encoded as those that a push brings.
    EXPECT_EQ(loss(train({codec, "replication=sync"})), loss(encoded)) << name;
  }
}

TEST_F(StandaloneTest, APipelineTrainsAsWellWithOlderGradients) {
  constexpr int kSteps = 100;
  // The change of the loss that one update more of age may make.
  constexpr double kTolerance = 0.05;
  const auto train = [this](const std::vector<std::string>& settings) {
    const std::string train_dir = NewTrainDir("pipeline");
    EXPECT_EQ(Train(train_dir, kSteps, settings), kExitDone);
    const auto result = ReadResult(train_dir);
    EXPECT_THAT(result, IsOk());
    return *result;
  };
  const auto staleness = [](const JsonValue& result) {
    return std::stod(result.Find("workers")->items[0].Find("staleness")->text);
  };
  const auto loss = [](const JsonValue& result) {
    return std::stod(result.Find("test_loss")->text);
  };
  const JsonValue plain = train({});
  EXPECT_EQ(staleness(plain), 0);
  for (const std::string codec : {"", "fp16"}) {
    const JsonValue pipelined = train(
        {"replication.async.pipeline_depth=2", "gradient.codec=" + codec});
    // All but the first are one update old: the worker's own.
    EXPECT_NEAR(staleness(pipelined), (kSteps - 1.0) / kSteps, 1e-6) << codec;
    EXPECT_NEAR(loss(pipelined), loss(plain), loss(plain) * kTolerance)
        << codec;
    EXPECT_NE(loss(pipelined), loss(plain)) << codec;
  }
  EXPECT_THAT(Lines(), Contains(HasSubstr("pipeline_depth: 2")));
}

TEST_F(StandaloneTest, TellsTheBytesThatACodecSaves) {
  // 4 bytes of 16 * 4 weights and 4 biases, 10 times.
  constexpr int64_t kBytes = 4 * (16 * 4 + 4) * 10;
  const auto train = [this](const std::vector<std::string>& settings) {
    const std::string train_dir = NewTrainDir("bytes");
    EXPECT_EQ(Train(train_dir, 10, settings), kExitDone);
    const auto result = ReadResult(train_dir);
    EXPECT_THAT(result, IsOk());
    return *result->Find("gradient");
  };
  const JsonValue plain = train({});
  EXPECT_EQ(plain.Find("codec")->text, "");
  EXPECT_FALSE(plain.Find("error_feedback")->boolean);
  EXPECT_EQ(plain.Find("bytes_sent")->text, absl::StrCat(kBytes));
  EXPECT_EQ(plain.Find("bytes_as_float32")->text, absl::StrCat(kBytes));
  const JsonValue encoded =
      train({"gradient.codec=fp16", "gradient.error_feedback=true"});
  EXPECT_EQ(encoded.Find("codec")->text, "fp16");
  EXPECT_TRUE(encoded.Find("error_feedback")->boolean);
  EXPECT_EQ(encoded.Find("bytes_sent")->text, absl::StrCat(kBytes / 2));
  EXPECT_EQ(encoded.Find("bytes_as_float32")->text, absl::StrCat(kBytes));
}

TEST_F(StandaloneTest, TrainsToALowerLossAndWritesTheResult) {
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir, 100), kExitDone);
  const auto result = ReadResult(train_dir);
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

TEST_F(StandaloneTest, AnotherBatchSizeGoesOnAtTheSameRow) {
  PosixFileSystem file_system;
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir, 3), kExitDone);
  ASSERT_EQ(Train(train_dir, 5, {"input.batch_size=20"}), kExitDone);
  const auto manifest =
      ReadManifestFile(&file_system, train_dir + "/ckpt-000000000005");
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->ledger().front(), 3 * 16 + 2 * 20);
  EXPECT_TRUE(manifest->ledger().undone().empty());
  EXPECT_EQ(manifest->examples(), 3 * 16 + 2 * 20);
}

TEST_F(StandaloneTest, TheTimeTrainedGoesOnAfterARestart) {
  PosixFileSystem file_system;
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir, 10), kExitDone);
  const auto first =
      ReadManifestFile(&file_system, train_dir + "/ckpt-000000000010");
  ASSERT_THAT(first, IsOk());
  ASSERT_EQ(Train(train_dir, 20), kExitDone);
  const auto second =
      ReadManifestFile(&file_system, train_dir + "/ckpt-000000000020");
  ASSERT_THAT(second, IsOk());
  EXPECT_GT(first->trained_s(), 0);
  EXPECT_GT(second->trained_s(), first->trained_s());
  // The stamp is of the wall clock: after this was written.
  EXPECT_GT(absl::FromUnixMillis(first->saved_unix_ms()),
            absl::FromCivil(absl::CivilDay(2020, 1, 1), absl::UTCTimeZone()));
}

TEST_F(StandaloneTest, TheTimeOfACheckpointThatCannotBeRestoredDoesNotCount) {
  PosixFileSystem file_system;
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir, 10), kExitDone);
  const std::string newest = train_dir + "/ckpt-000000000010";
  auto manifest = ReadManifestFile(&file_system, newest);
  ASSERT_THAT(manifest, IsOk());
  manifest->set_trained_s(1e6);
  std::ofstream(newest + "/manifest.textproto") << *FormatManifest(*manifest);
  std::filesystem::resize_file(newest + "/parameters.safetensors", 1);
  ASSERT_EQ(Train(train_dir, 20, {"stop.seconds=1e5"}), kExitDone);
  EXPECT_EQ(ReadResult(train_dir)->Find("stop_reason")->text, "steps");
}

TEST_F(StandaloneTest, KeepsTheFirstCheckpointOfEveryPeriod) {
  PosixFileSystem file_system;
  const auto count_kept = [&](const std::string& hours) -> size_t {
    const std::string train_dir = NewTrainDir("keep");
    // Each ends with a save, however few a slow disk allows in between.
    for (const int64_t steps : {100, 200, 300}) {
      EXPECT_EQ(Train(train_dir, steps,
                      {"checkpoint.keep=2", "checkpoint.every_steps=10",
                       "checkpoint.keep_every_hours=" + hours}),
                kExitDone);
    }
    const auto steps = ListCheckpoints(&file_system, train_dir);
    EXPECT_THAT(steps, IsOk());
    return steps.ok() ? steps->size() : 0;
  };
  EXPECT_EQ(count_kept("0"), 2u);
  // A period of a microsecond: every one is the first of its own.
  EXPECT_GT(count_kept("3e-10"), 2u);
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

// The codes of these files' errors are also those of a ps that is lost, for
// which the end would be tried again and again.
TEST_F(StandaloneTest, AResultThatCannotBeWrittenEndsItNamingTheFile) {
  const std::string train_dir = NewTrainDir("train");
  std::filesystem::create_directory(train_dir + "/result.json");
  EXPECT_EQ(Train(train_dir, 1), kExitFailed);
  EXPECT_THAT(Lines(), Contains(HasSubstr(train_dir + "/result.json")));
  PosixFileSystem file_system;
  EXPECT_THAT(ListCheckpoints(&file_system, train_dir),
              IsOkAndHolds(ElementsAre(1, 0)));
}

TEST_F(StandaloneTest, ALastSaveWithoutItsFolderEndsItNamingIt) {
  const std::string train_dir = NewTrainDir("train");
  // In one instant: a checkpoint may be written to it just now.
  on_progress_ = [&train_dir] {
    std::error_code it_is_gone;
    std::filesystem::rename(train_dir, train_dir + "-elsewhere", it_is_gone);
  };
  EXPECT_EQ(Train(train_dir, 10), kExitFailed);
  EXPECT_THAT(Lines(),
              Contains(AllOf(HasSubstr("final save: "), HasSubstr(train_dir))));
}

TEST_F(StandaloneTest, AFolderThatIsGoneIsNoNewTraining) {
  const std::string train_dir = NewTrainDir("train");
  const auto options = MakeOptions(kTraining, {"stop.steps=1"}, train_dir);
  ASSERT_THAT(options, IsOk());
  const auto task = CreateTask(*options);
  ASSERT_THAT(task, IsOk());
  std::filesystem::remove_all(train_dir);
  EXPECT_EQ((*task)->Run(), kExitBadCheckpoint);
  EXPECT_THAT(Lines(), Contains(HasSubstr(train_dir)));
}

// ps task 0, which would refuse it, is not asked.
TEST_F(StandaloneTest, ATextThatFitsIntoNoMessageIsRefusedAtTheStart) {
  auto options = MakeOptions(kTraining, {"stop.steps=1"}, "");
  ASSERT_THAT(options, IsOk());
  ClusterDef cluster;
  for (const char* const name : {"ps", "worker"}) {
    JobDef* const job = cluster.add_job();
    job->set_name(name);
    (*job->mutable_tasks())[0] = absl::StrCat(name, ":1");
  }
  const auto spec = ClusterSpec::Create(cluster);
  ASSERT_THAT(spec, IsOk());
  options->cluster = *spec;
  ModelSpec* const model = options->training.mutable_model();
  model->mutable_layer(0)->set_name(std::string(2 << 20, 'x'));
  EXPECT_THAT(CreateTask(*options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("can be sent to ps task 0")));
}

// Before the model is made, and ps task 0 refuses to commit it.
TEST_F(StandaloneTest, EpochsThatAreNoCountAreRefusedAtTheStart) {
  const auto options = MakeOptions(kTraining, {"stop.epochs=1e14"}, "");
  ASSERT_THAT(options, IsOk());
  EXPECT_THAT(CreateTask(*options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("of 320 training examples: wanted 1 to")));
}

TEST_F(StandaloneTest, StopsAfterItsTime) {
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir, 0, {"stop.seconds=0.2"}), kExitDone);
  const auto result = ReadResult(train_dir);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("stop_reason")->text, "seconds");
  EXPECT_THAT(Lines(), Contains(HasSubstr(": seconds")));
}

TEST_F(StandaloneTest, ARunThatTimeEnded_IsFinishedUnlessItGetsMore) {
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir, 0, {"stop.seconds=0.2"}), kExitDone);
  const int64_t step = ResultStep(train_dir);
  ASSERT_EQ(Train(train_dir, 0, {"stop.seconds=0.2"}), kExitDone);
  EXPECT_EQ(ResultStep(train_dir), step);
  EXPECT_THAT(Lines(), Contains(HasSubstr(absl::StrCat(
                           "the training was finished already: step ", step,
                           ", by stop.seconds"))));
  ASSERT_EQ(Train(train_dir, 0, {"stop.seconds=0.4"}), kExitDone);
  EXPECT_GT(ResultStep(train_dir), step);
}

TEST_F(StandaloneTest, ARunThatItsAccuracyEnded_IsFinishedUnlessItWantsMore) {
  const std::string train_dir = NewTrainDir("train");
  const auto train = [&](const std::string& accuracy, int64_t steps = 0) {
    EXPECT_EQ(
        Train(train_dir, steps,
              {"evaluation.every_steps=5", "stop.target_accuracy=" + accuracy}),
        kExitDone);
    return ResultStep(train_dir);
  };
  const int64_t step = train("0.5", /*steps=*/1000000);
  const std::string line =
      absl::StrCat("the training was finished already: step ", step,
                   ", by stop.target_accuracy");
  EXPECT_THAT(Lines(), Not(Contains(HasSubstr(line))));
  EXPECT_EQ(train("0.5"), step);
  EXPECT_THAT(Lines(), Contains(HasSubstr(line)));
  std::filesystem::remove(train_dir + "/result.json");
  EXPECT_EQ(train("0.4"), step);
  EXPECT_EQ(train("0.9", /*steps=*/step), step) << "steps go before";
  EXPECT_GT(train("0.9"), step);
}

TEST_F(StandaloneTest, ARunThatASignalEnded_GoesOn) {
  const std::string train_dir = NewTrainDir("train");
  const std::vector<std::string> settings = {"evaluation.every_steps=1000",
                                             "stop.target_accuracy=1"};
  const auto options = MakeOptions(kTraining, settings, train_dir);
  ASSERT_THAT(options, IsOk());
  {
    const auto task = CreateTask(*options);
    ASSERT_THAT(task, IsOk());
    (*task)->RequestStop(15);
    EXPECT_EQ((*task)->Run(), 128 + 15);
  }
  EXPECT_EQ(Train(train_dir, 3, settings), kExitDone);
  EXPECT_EQ(ResultStep(train_dir), 3);
}

TEST_F(StandaloneTest, StopsAtTheTargetAccuracyAndBeforeTheLimit) {
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir, 1000000,
                  {"stop.target_accuracy=0.9", "evaluation.every_steps=5"}),
            kExitDone);
  const auto result = ReadResult(train_dir);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("stop_reason")->text, "target_accuracy");
  EXPECT_GE(std::stod(result->Find("test_accuracy")->text), 0.9);
  // No step is taken after the evaluation.
  EXPECT_EQ(std::stoi(result->Find("global_step")->text) % 5, 0);
}

TEST_F(StandaloneTest, DivergedTrainingEndsItNamingStepAndTensor) {
  const std::string train_dir = NewTrainDir("train");
  // The first update is about 1e37 and finite, a later one is not.
  EXPECT_EQ(Train(train_dir, 100, {"optimizer.momentum.learning_rate=1e38"}),
            kExitFailed);
  const auto result = ReadResult(train_dir);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("stop_reason")->text, "non_finite");
  EXPECT_THAT(Lines(),
              Contains(AllOf(HasSubstr("step "), HasSubstr(" of /job:worker/"),
                             HasSubstr("gradient of 'logits/"),
                             HasSubstr("3 such steps in a row"))));
  // Only the checkpoint of the beginning is there.
  PosixFileSystem file_system;
  EXPECT_THAT(ListCheckpoints(&file_system, train_dir),
              IsOkAndHolds(ElementsAre(0)));
}

TEST_F(StandaloneTest, WritesAProfileAndLogsTensors) {
  const std::string train_dir = NewTrainDir("train");
  profile_steps_ = 3;
  ASSERT_EQ(Train(train_dir, 10,
                  {"log_tensors.every_steps=4", "log_tensors.pattern=.*bias"}),
            kExitDone);
  EXPECT_THAT(Lines(),
              Contains(HasSubstr("tensor logits/bias [4] step=8 min=")));
  const auto profile = ParseJson(ReadAll(train_dir + "/profile-worker-0.json"));
  ASSERT_THAT(profile, IsOk());
  std::map<std::string, int> spans;
  for (const JsonValue& event : profile->Find("traceEvents")->items) {
    if (event.Find("ph")->text == "X") ++spans[event.Find("name")->text];
  }
  for (const char* name :
       {"step", "input", "compute", "forward", "backward", "hooks", "push",
        "report", "logits/weights", "logits/bias"}) {
    EXPECT_EQ(spans[name], 3) << name;
  }
  // Each push brings the values of the next step.
  EXPECT_EQ(spans["pull"], 1);
}

TEST_F(StandaloneTest, StopsAfterWholeEpochs) {
  const std::string train_dir = NewTrainDir("train");
  ASSERT_EQ(Train(train_dir, 0, {"stop.epochs=2"}), kExitDone);
  const auto result = ReadResult(train_dir);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->Find("global_step")->text, "40");  // 2 * 320 / 16.
}

}  // namespace
}  // namespace muster
