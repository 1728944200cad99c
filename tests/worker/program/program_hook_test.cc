#include "worker/program/program_hook.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/summary.pb.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

ProgramSteps::Options MakeStepOptions() {
  ProgramSteps::Options options;
  options.clock = SystemClock();
  return options;
}

class ProgramHookTest : public testing::Test {
 protected:
  ProgramHookTest() {
    hook_.Connect(
        [this](int64_t global_step, Summary summary) {
          for (const auto& value : summary.value()) {
            written_.push_back(absl::StrCat(global_step, " ", value.tag()));
          }
        },
        [this] { ++saves_; });
  }

  void CountStep(int64_t global_step) {
    StepRecord step;
    step.global_step = global_step;
    EXPECT_THAT(hook_.AfterStep(step), IsOk());
  }

  ProgramSteps steps_{MakeStepOptions()};
  ProgramHook hook_{&steps_};
  std::vector<std::string> written_;
  int saves_ = 0;
};

TEST_F(ProgramHookTest, LoggedFigure_IsWrittenOnceWithTheNextCountedStep) {
  hook_.Log("loss_of_teacher", 1);
  hook_.Log("accuracy", 0.5);
  CountStep(7);
  CountStep(8);
  EXPECT_THAT(written_, ElementsAre("7 accuracy", "7 loss_of_teacher"));
}

TEST_F(ProgramHookTest, FigureLoggedAfterTheLastStep_IsWrittenAtTheEnd) {
  CountStep(7);
  hook_.Log("final", 1);
  EndRecord end;
  end.global_step = 9;
  EXPECT_THAT(hook_.AtEnd(end), IsOk());
  EXPECT_THAT(written_, ElementsAre("9 final"));
}

TEST_F(ProgramHookTest, WantedSave_IsBegunOnceWithTheNextCountedStep) {
  CountStep(1);
  hook_.Save();
  hook_.Save();
  CountStep(2);
  CountStep(3);
  EXPECT_EQ(saves_, 1);
}

TEST(ProgramHookAloneTest, WithoutWriterAndSaver_FiguresAndSavesAreDropped) {
  ProgramSteps steps{MakeStepOptions()};
  ProgramHook hook(&steps);
  hook.Log("a", 1);
  hook.Save();
  EXPECT_THAT(hook.AfterStep(StepRecord()), IsOk());
}

}  // namespace
}  // namespace muster
