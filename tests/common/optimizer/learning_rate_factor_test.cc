#include "common/optimizer/learning_rate_factor.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(LearningRateFactorTest, WithoutAPlateau_IsOne) {
  EXPECT_EQ(LearningRateFactor(EvaluationHistory(), 1), 1);
}

TEST(LearningRateFactorTest, AfterTheFirstPlateau_ChangesFromItsUpdateOn) {
  EvaluationHistory history;
  history.set_learning_rate_factor(0.1);
  history.set_factor_from(12);
  EXPECT_EQ(LearningRateFactor(history, 11), 1);
  EXPECT_EQ(LearningRateFactor(history, 12), 0.1);
  EXPECT_EQ(LearningRateFactor(history, 900), 0.1);
}

TEST(LearningRateFactorTest, BeforeTheSecondPlateausUpdate_IsTheFirstOnes) {
  EvaluationHistory history;
  history.set_learning_rate_factor(0.01);
  history.set_learning_rate_factor_before(0.1);
  history.set_factor_from(12);
  EXPECT_EQ(LearningRateFactor(history, 11), 0.1);
  EXPECT_EQ(LearningRateFactor(history, 12), 0.01);
}

}  // namespace
}  // namespace muster
