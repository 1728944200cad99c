#include "worker/tower/batch_plan.h"

#include <gtest/gtest.h>

#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(BatchPlanTest, ABatchSizeIsThatOfATower) {
  TrainingSpec training;
  training.mutable_input()->set_batch_size(32);
  const auto shape = ResolveBatchPlan(training, /*towers=*/2, /*workers=*/3);
  ASSERT_THAT(shape, IsOk());
  EXPECT_EQ(shape->batch_size, 32);
  EXPECT_EQ(shape->accumulate_batches, 1);
  EXPECT_EQ(shape->worker_batches(), 2);
  EXPECT_EQ(shape->worker_rows(), 64);
  EXPECT_EQ(shape->global_rows(), 192);
}

TEST(BatchPlanTest, AccumulatedBatchesBelongToThePush) {
  TrainingSpec training;
  training.mutable_input()->set_batch_size(32);
  training.mutable_gradient()->set_accumulate_batches(4);
  const auto shape = ResolveBatchPlan(training, 2, 3);
  ASSERT_THAT(shape, IsOk());
  EXPECT_EQ(shape->worker_batches(), 8);
  EXPECT_EQ(shape->worker_rows(), 256);
}

TEST(BatchPlanTest, AGlobalBatchIsDividedAmongAll) {
  TrainingSpec training;
  training.mutable_input()->set_global_batch_size(240);
  training.mutable_gradient()->set_accumulate_batches(4);
  const auto shape = ResolveBatchPlan(training, 2, 3);
  ASSERT_THAT(shape, IsOk());
  EXPECT_EQ(shape->batch_size, 10);
  EXPECT_EQ(shape->global_rows(), 240);
}

TEST(BatchPlanTest, AGlobalBatchThatCannotBeDividedIsRefused) {
  TrainingSpec training;
  training.mutable_input()->set_global_batch_size(100);
  training.mutable_gradient()->set_accumulate_batches(2);
  EXPECT_THAT(
      ResolveBatchPlan(training, 2, 3),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("input.global_batch_size: 100"),
                     HasSubstr("3 worker(s) * 2 tower(s) * 2 accumulated"),
                     HasSubstr("a multiple of 12"))));
}

TEST(BatchPlanTest, AGlobalBatchOfFewerRowsThanTowersIsRefused) {
  TrainingSpec training;
  training.mutable_input()->set_global_batch_size(3);
  EXPECT_FALSE(ResolveBatchPlan(training, 2, 2).ok());
}

}  // namespace
}  // namespace muster
