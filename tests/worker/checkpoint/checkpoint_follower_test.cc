#include "worker/checkpoint/checkpoint_follower.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/train_dir.h"
#include "common/process/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTrainDir[] = "train";

// Lets something happen right after the first look.
class WatchedFileSystem : public FakeFileSystem {
 public:
  using FakeFileSystem::FakeFileSystem;

  absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) override {
    auto names = FakeFileSystem::List(path);
    const auto action = std::exchange(after_list, nullptr);
    if (action) action();
    return names;
  }

  std::function<void()> after_list;
};

class CheckpointFollowerTest : public testing::Test {
 protected:
  void Save(int64_t step, int keep = 5) {
    EXPECT_THAT(SaveSmall(&files_, kTrainDir, step, Retention{keep, 0}, step),
                IsOk());
  }
  std::string File(int64_t step, const char* name) const {
    return absl::StrCat(kTrainDir, "/", CheckpointName(step), "/", name);
  }
  void Damage(int64_t step, const char* name) {
    std::string bytes = files_.Contents(File(step, name));
    bytes.back() ^= 1;
    files_.SetContents(File(step, name), bytes);
  }
  void FinishJob() { job_.Stop({kExitDone, "the job is done"}); }

  int Run() {
    CheckpointFollower::Options options;
    options.train_dir = kTrainDir;
    options.look_every = absl::Milliseconds(1);
    options.evaluate = [this](const CheckpointReader& reader) {
      return on_evaluate_(reader.manifest().global_step());
    };
    options.report = [this](const CheckpointReader& reader,
                            const EvaluationResult&) {
      evaluated_.push_back(reader.manifest().global_step());
    };
    options.reporter = reported_.reporter();
    options.file_system = &files_;
    options.job = &job_;
    options.interrupted = &interrupted_;
    return CheckpointFollower(options).Run();
  }

  WatchedFileSystem files_{kTrainDir};
  StopLatch job_;
  StopLatch interrupted_;
  // Called while a checkpoint is evaluated.
  std::function<absl::StatusOr<EvaluationResult>(int64_t step)> on_evaluate_ =
      [](int64_t) { return EvaluationResult(); };
  std::vector<int64_t> evaluated_;
  ReportedLines reported_;
};

TEST_F(CheckpointFollowerTest, EvaluatesWhatIsThereWhenTheJobIsDone) {
  Save(10);
  Save(20);
  FinishJob();
  EXPECT_EQ(Run(), kExitDone);
  EXPECT_THAT(evaluated_, ElementsAre(10, 20));
  EXPECT_THAT(reported_.lines(),
              ElementsAre(HasSubstr("evaluated 2 checkpoints")));
  EXPECT_THAT(reported_.errors(), IsEmpty());
}

TEST_F(CheckpointFollowerTest, FollowsATrainingToItsEnd) {
  on_evaluate_ = [this](int64_t step) {
    if (step < 50) Save(step + 10);
    if (step == 50) FinishJob();
    return EvaluationResult();
  };
  Save(10);
  EXPECT_EQ(Run(), kExitDone);
  EXPECT_THAT(evaluated_, ElementsAre(10, 20, 30, 40, 50));
}

TEST_F(CheckpointFollowerTest, TheLastCheckpointMayComeRightAfterALook) {
  files_.after_list = [this] {
    Save(20);
    FinishJob();
  };
  EXPECT_EQ(Run(), kExitDone);
  EXPECT_THAT(evaluated_, ElementsAre(20));
}

TEST_F(CheckpointFollowerTest, WaitsForTheFirstCheckpoint) {
  // Nothing is evaluated, so nothing ends it but the signal.
  interrupted_.Stop({143, "signal 15"});
  EXPECT_EQ(Run(), 143);
  EXPECT_THAT(reported_.lines(),
              ElementsAre(HasSubstr("waiting for the first checkpoint"),
                          HasSubstr("signal 15")));
}

TEST_F(CheckpointFollowerTest, ATrainDirThatIsNotYetThereIsWaitedFor) {
  FakeFileSystem empty("elsewhere");
  CheckpointFollower::Options options;
  options.train_dir = kTrainDir;
  options.reporter = reported_.reporter();
  options.file_system = &empty;
  options.job = &job_;
  options.interrupted = &interrupted_;
  interrupted_.Stop({143, "signal 15"});
  EXPECT_EQ(CheckpointFollower(options).Run(), 143);
  EXPECT_THAT(reported_.lines().front(),
              HasSubstr("waiting for the first checkpoint"));
}

TEST_F(CheckpointFollowerTest, ASignalEndsAnEvaluation) {
  Save(10);
  on_evaluate_ = [this](int64_t) -> absl::StatusOr<EvaluationResult> {
    interrupted_.Stop({143, "signal 15"});
    return absl::CancelledError("evaluation: stopped");
  };
  EXPECT_EQ(Run(), 143);
  EXPECT_THAT(evaluated_, IsEmpty());
  EXPECT_THAT(reported_.errors(), IsEmpty());
}

TEST_F(CheckpointFollowerTest, ALostJobEndsItWithItsCode) {
  Save(10);
  job_.Stop({kExitRetryable, "/job:ps/task:0 was not reached"});
  EXPECT_EQ(Run(), kExitRetryable);
  EXPECT_THAT(reported_.errors(), ElementsAre(HasSubstr("/job:ps/task:0")));
}

TEST_F(CheckpointFollowerTest, ACheckpointOfNothingButNanEndsItAsATraining) {
  on_evaluate_ = [](int64_t step) {
    EvaluationResult result;
    result.examples = 8;
    result.non_finite = step == 10 ? 7 : 8;
    return result;
  };
  for (const int64_t step : {10, 20, 30}) Save(step);
  EXPECT_EQ(Run(), kExitFailed);
  EXPECT_THAT(evaluated_, ElementsAre(10, 20));
  EXPECT_THAT(reported_.errors(),
              ElementsAre(HasSubstr("the outputs of all 8 rows are NaN")));
}

TEST_F(CheckpointFollowerTest, DamagedCheckpointsAreOneLineEach) {
  for (const int64_t step : {10, 20, 30}) Save(step);
  Damage(10, kParametersFile);
  Damage(20, kManifestFile);
  on_evaluate_ = [this](int64_t) {
    // The next look must not bring them up again.
    FinishJob();
    return EvaluationResult();
  };
  EXPECT_EQ(Run(), kExitDone);
  EXPECT_THAT(evaluated_, ElementsAre(30));
  EXPECT_THAT(reported_.errors(),
              ElementsAre(HasSubstr(File(10, kParametersFile)),
                          HasSubstr(File(20, kManifestFile))));
}

TEST_F(CheckpointFollowerTest, SaysWhichOnesWentUnseen) {
  Save(10);
  Save(20);
  on_evaluate_ = [this](int64_t step) {
    if (step == 10) {
      Save(30, /*keep=*/2);
      Save(40, /*keep=*/2);
      FinishJob();
    }
    return EvaluationResult();
  };
  EXPECT_EQ(Run(), kExitDone);
  EXPECT_THAT(evaluated_, ElementsAre(10, 30, 40));
  EXPECT_THAT(
      reported_.lines().front(),
      HasSubstr(absl::StrCat(CheckpointName(20), " was removed before")));
  EXPECT_THAT(reported_.errors(), IsEmpty());
}

TEST_F(CheckpointFollowerTest, SaysWhichOneWentMeanwhile) {
  Save(10);
  on_evaluate_ = [this](int64_t) -> absl::StatusOr<EvaluationResult> {
    EXPECT_THAT(files_.Remove(absl::StrCat(kTrainDir, "/", CheckpointName(10))),
                IsOk());
    FinishJob();
    return absl::NotFoundError("no such file");
  };
  EXPECT_EQ(Run(), kExitDone);
  EXPECT_THAT(reported_.lines().front(), HasSubstr("was removed while"));
  EXPECT_THAT(reported_.errors(), IsEmpty());
}

TEST_F(CheckpointFollowerTest, AnotherModelsTrainDirEndsIt) {
  Save(10);
  on_evaluate_ = [](int64_t) -> absl::StatusOr<EvaluationResult> {
    return absl::FailedPreconditionError("'dense/weights' has another shape");
  };
  EXPECT_EQ(Run(), kExitBadCheckpoint);
  EXPECT_THAT(reported_.errors(), ElementsAre(HasSubstr("'dense/weights'")));
}

TEST_F(CheckpointFollowerTest, ChangesNothingInTheTrainDir) {
  Save(10);
  const int calls = files_.calls();
  FinishJob();
  EXPECT_EQ(Run(), kExitDone);
  EXPECT_EQ(files_.calls(), calls);
}

}  // namespace
}  // namespace muster
