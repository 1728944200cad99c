#include "worker/hook/tensor_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/reporter.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

class TensorLogTest : public ::testing::Test {
 protected:
  TensorLogTest() {
    tensors_ = {{"conv1/weights", {2, 2}, true, values_, gradient_},
                {"conv1/bias", {1}, true, one_, one_},
                {"empty", {0}, true, {}, {}}};
    spec_.set_every_steps(10);
  }
  void Run(int64_t number) {
    auto log = TensorLog::Create(spec_, lines_.reporter());
    ASSERT_THAT(log, IsOk());
    StepRecord step;
    step.step = number;
    step.tensors = tensors_;
    EXPECT_THAT((*log)->BeforePush(step), IsOkAndHolds(PushDecision::kPush));
  }

  const std::vector<float> values_ = {1, -2, 3, 6};
  const std::vector<float> gradient_ = {0, 0, -3, 4};
  const std::vector<float> one_ = {1};
  std::vector<StepTensor> tensors_;
  LogTensorsSpec spec_;
  ReportedLines lines_;
};

TEST_F(TensorLogTest, DescribesValueAndGradient) {
  spec_.set_pattern("conv1/w.*");
  Run(20);
  EXPECT_THAT(lines_.lines(),
              ElementsAre("I tensor conv1/weights [2,2] step=20 min=-2 max=6 "
                          "mean=2 norm=7.071 gradient_min=-3 gradient_max=4 "
                          "gradient_mean=0.25 gradient_norm=5"));
}

TEST_F(TensorLogTest, WithoutAPatternAllAreLogged) {
  Run(10);
  EXPECT_THAT(lines_.lines(),
              ElementsAre(StartsWith("I tensor conv1/weights [2,2]"),
                          StartsWith("I tensor conv1/bias [1]"),
                          StartsWith("I tensor empty [0]")));
}

TEST_F(TensorLogTest, StaysSilentBetweenItsSteps) {
  Run(9);
  Run(11);
  EXPECT_THAT(lines_.lines(), SizeIs(0));
}

TEST_F(TensorLogTest, RefusesAPatternThatIsNone) {
  spec_.set_pattern("(");
  EXPECT_THAT(TensorLog::Create(spec_, Reporter()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("log_tensors.pattern '('")));
}

TEST_F(TensorLogTest, APatternThatMatchesNothingIsRefusedByName) {
  std::vector<TensorDef> tensors(1);
  tensors[0].set_name("conv1/weights");
  EXPECT_THAT(CheckTensorLog(spec_, tensors), IsOk());
  spec_.set_pattern("conv1/.*");
  EXPECT_THAT(CheckTensorLog(spec_, tensors), IsOk());
  spec_.set_pattern("conv1");
  EXPECT_THAT(CheckTensorLog(spec_, tensors),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("log_tensors.pattern 'conv1' matches no whole "
                                 "name; did you mean 'conv1/.*'? "
                                 "there are: conv1/weights")));
}

}  // namespace
}  // namespace muster
