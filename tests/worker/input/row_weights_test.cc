#include "worker/input/row_weights.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

// With room for a row more than there is.
Batch WeightedBatch(const std::vector<float>& weights) {
  const auto rows = static_cast<int64_t>(weights.size());
  Batch batch = MakeLabelledBatch(rows + 1, Shape({2}));
  batch.Add(kBatchWeights, FLOAT32, Shape(), rows + 1);
  batch.rows = rows;
  std::copy(weights.begin(), weights.end(), batch.weights().begin());
  return batch;
}

TEST(RowWeightsTest, TheMeanOverAllBatchesBecomes1) {
  std::vector<Batch> batches;
  batches.push_back(WeightedBatch({1, 3}));
  batches.push_back(WeightedBatch({0, 12}));
  NormalizeWeights(absl::MakeSpan(batches));
  EXPECT_THAT(batches[0].weights().first(2),
              ElementsAre(FloatEq(0.25), FloatEq(0.75)));
  EXPECT_THAT(batches[1].weights().first(2), ElementsAre(0, FloatEq(3)));
  EXPECT_EQ(batches[0].weight, 4);
  EXPECT_EQ(batches[1].weight, 12);
}

TEST(RowWeightsTest, WeightsThatAreAll0StaySo) {
  Batch batch = WeightedBatch({0, 0, 0});
  NormalizeWeights({&batch, 1});
  EXPECT_THAT(batch.weights().first(3), ElementsAre(0, 0, 0));
  EXPECT_EQ(batch.weight, 0);
}

TEST(RowWeightsTest, TheLargestFloatsDoNotOverflow) {
  Batch batch = WeightedBatch({3e38f, 3e38f, 3e38f});
  NormalizeWeights({&batch, 1});
  EXPECT_THAT(batch.weights().first(3),
              ElementsAre(FloatEq(1), FloatEq(1), FloatEq(1)));
}

TEST(RowWeightsTest, RowsWithoutWeightsStayAsTheyAre) {
  Batch batch = MakeLabelledBatch(2, Shape({2}));
  batch.rows = 2;
  NormalizeWeights({&batch, 1});
  EXPECT_EQ(batch.Find(kBatchWeights), nullptr);
}

}  // namespace
}  // namespace muster
