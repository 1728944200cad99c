#include "worker/checkpoint/settled_evaluations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SettledEvaluationsTest : public ::testing::Test {
 protected:
  // What ps task 0 or a manifest knows.
  static EvaluationHistory Known(int64_t global_step, int64_t best_step) {
    EvaluationHistory known;
    known.set_global_step(global_step);
    known.mutable_kept()->set_metric("test_accuracy");
    known.mutable_kept()->set_best_step(best_step);
    return known;
  }
  EvaluationHistory Settle(int64_t model_epoch, EvaluationHistory known) {
    return SettleEvaluations(&fs_, "train", model_epoch, std::move(known),
                             lines_.reporter());
  }

  FakeFileSystem fs_{"train"};
  ReportedLines lines_;
};

TEST_F(SettledEvaluationsTest, ASaveThatWasNotReported_Counts) {
  ASSERT_THAT(SaveNamingBest(&fs_, "train", 10, /*best_step=*/10), IsOk());
  ASSERT_THAT(SaveNamingBest(&fs_, "train", 20, /*best_step=*/20), IsOk());
  EXPECT_EQ(Settle(3, Known(20, 10)).kept().best_step(), 20);
  EXPECT_EQ(Settle(3, Known(30, 10)).kept().best_step(), 10)
      << "the job is further";
}

TEST_F(SettledEvaluationsTest, AManifestOfAnotherEpoch_IsPassedOver) {
  ASSERT_THAT(SaveNamingBest(&fs_, "train", 10, /*best_step=*/10), IsOk());
  ASSERT_THAT(SaveNamingBest(&fs_, "train", 20, /*best_step=*/20), IsOk());
  EXPECT_EQ(Settle(4, Known(10, 10)).kept().best_step(), 10);
}

TEST_F(SettledEvaluationsTest, ABestOneThatIsGone_IsForgottenAndSaid) {
  ASSERT_THAT(SaveNamingBest(&fs_, "train", 10, /*best_step=*/10), IsOk());
  const EvaluationHistory settled = Settle(4, Known(8, 5));
  EXPECT_FALSE(settled.has_kept());
  EXPECT_EQ(settled.global_step(), 8);
  EXPECT_THAT(lines_.lines(),
              ElementsAre(HasSubstr("ckpt-000000000005', cannot be read")));
}

TEST_F(SettledEvaluationsTest, WithoutCheckpoints_NothingIsKept) {
  EXPECT_FALSE(Settle(1, {}).has_kept());
  EXPECT_THAT(lines_.lines(), IsEmpty());
}

}  // namespace
}  // namespace muster
