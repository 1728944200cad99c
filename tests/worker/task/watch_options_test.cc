#include "worker/task/watch_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/step/tiny_model.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WatchOptionsTest : public ::testing::Test {
 protected:
  WatchOptionsTest() {
    plateau().set_metric("test_accuracy");
    plateau().set_patience(3);
  }
  PlateauSpec& plateau() {
    return *training_.mutable_stop()->mutable_plateau();
  }
  absl::StatusOr<EvaluationWatch::Options> Make(absl::string_view half) {
    return WatchOptions(training_, *tiny_.model(), half, lines_.reporter());
  }

  TinyModel tiny_{/*classes=*/4, /*batch_size=*/1,
                  CompileOptions::Mode::kEvaluate};
  TrainingSpec training_;
  ReportedLines lines_;
};

TEST_F(WatchOptionsTest, AFigureOfTheTestHalf_IsAllowedAndSaid) {
  const auto options = Make("test");
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->stop.metric, "test_accuracy");
  EXPECT_FALSE(options->stop.smaller_is_better);
  EXPECT_EQ(options->stop_patience, 3);
  EXPECT_THAT(lines_.lines(),
              ElementsAre(AllOf(HasSubstr("stop.plateau.metric is "
                                          "test_accuracy"),
                                HasSubstr("the test half"))));
}

TEST_F(WatchOptionsTest, TheLossOfAnotherHalf_IsAFigureWithoutALine) {
  plateau().set_metric("validation_loss");
  const auto options = Make("validation");
  ASSERT_THAT(options, IsOk());
  EXPECT_TRUE(options->stop.smaller_is_better);
  EXPECT_THAT(lines_.lines(), IsEmpty());
}

TEST_F(WatchOptionsTest, AFigureThatNoEvaluationMakes_IsRefusedWithThoseMade) {
  EXPECT_THAT(Make("validation"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("stop.plateau.metric"),
                             HasSubstr("'test_accuracy'"),
                             HasSubstr("validation_loss, "
                                       "validation_accuracy"))));
}

}  // namespace
}  // namespace muster
