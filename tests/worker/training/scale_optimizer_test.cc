#include "worker/training/scale_optimizer.h"

#include <string>

#include "common/optimizer/update_rule.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// 64 rows a push: 8 a batch, 2 towers, 4 batches each.
BatchPlan FourWorkers() {
  BatchPlan shape;
  shape.batch_size = 8;
  shape.towers = 2;
  shape.accumulate_batches = 4;
  shape.workers = 4;
  return shape;
}

int64_t RowsOf(const std::string& replication) {
  ReplicationSpec spec;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(replication, &spec));
  return UpdateRows(spec, FourWorkers());
}

TEST(ScaleOptimizerTest, AnUpdateIsAPushWhereEachPushIsApplied) {
  EXPECT_EQ(RowsOf(""), 64);
  EXPECT_EQ(RowsOf("async {}"), 64);
  EXPECT_EQ(RowsOf("bounded_staleness { bound: 2 }"), 64);
}

TEST(ScaleOptimizerTest, AnUpdateIsAllAggregatedPushesInSync) {
  EXPECT_EQ(RowsOf("sync {}"), 256);
  EXPECT_EQ(RowsOf("sync { replicas_to_aggregate: 3 }"), 192);
  EXPECT_EQ(RowsOf("sync { total_replicas: 2 }"), 128);
  EXPECT_EQ(RowsOf("sync { replicas_to_aggregate: 1 total_replicas: 4 }"), 64);
}

TEST(ScaleOptimizerTest, FewerRowsThanAnUpdate_AreRefusedWithABatchThatFits) {
  EXPECT_THAT(CheckUpdateRows(FourWorkers(), 256, 256), IsOk());
  EXPECT_THAT(CheckUpdateRows(FourWorkers(), 256, /*num_examples=*/0), IsOk());
  EXPECT_THAT(CheckUpdateRows(FourWorkers(), 256, 255).message(),
              HasSubstr("4 worker(s) with 8 batch(es) of 8 want 256 training "
                        "examples for one update, the data set has 255: "
                        "--set=input.batch_size=7,"));
  EXPECT_THAT(CheckUpdateRows(FourWorkers(), 256, 31).message(),
              HasSubstr("train with fewer workers"));
}

TEST(ScaleOptimizerTest, LeavesTheRateOfTheWholeJobInTheTraining) {
  TrainingSpec training;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "optimizer { name: 'sgd' attr { name: 'learning_rate' f: 0.1 }"
      "  learning_rate_scaling: LINEAR reference_batch_size: 64 }"
      "replication { sync {} }",
      &training));
  const auto line = ScaleOptimizer(FourWorkers(), &training);
  ASSERT_THAT(line, IsOk());
  EXPECT_THAT(*line, HasSubstr("learning rate 0.4 = 0.1 x 4"));
  const auto rate = LearningRateOf(training.optimizer());
  ASSERT_THAT(rate, IsOk());
  EXPECT_DOUBLE_EQ(rate->base(), 0.4);
  // Once is enough.
  const auto again = ScaleOptimizer(FourWorkers(), &training);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again, "");
}

TEST(ScaleOptimizerTest, TheRatesOfTables_AreThoseOfTheWholeJobToo) {
  TrainingSpec training;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "optimizer { name: 'sgd' attr { name: 'learning_rate' f: 0.1 } }"
      "table { pattern: 'a' }"
      "table { pattern: 'b' optimizer { name: 'adagrad'"
      "  attr { name: 'learning_rate' f: 0.2 }"
      "  learning_rate_scaling: LINEAR reference_batch_size: 32 } }",
      &training));
  const auto line = ScaleOptimizer(FourWorkers(), &training);
  ASSERT_THAT(line, IsOk());
  EXPECT_THAT(*line, HasSubstr("learning rate 0.4 = 0.2 x 2"));
  EXPECT_FALSE(training.table(0).has_optimizer());
  const auto rate = LearningRateOf(training.table(1).optimizer());
  ASSERT_THAT(rate, IsOk());
  EXPECT_DOUBLE_EQ(rate->base(), 0.4);
}

}  // namespace
}  // namespace muster
