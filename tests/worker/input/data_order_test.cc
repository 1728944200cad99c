#include "worker/input/data_order.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kSeed = 7;

DataOrder::Options Options(int64_t batch_size, int64_t worker_index,
                           int64_t num_workers) {
  DataOrder::Options options;
  options.seed = kSeed;
  options.batch_size = batch_size;
  options.worker_index = worker_index;
  options.num_workers = num_workers;
  return options;
}

DataOrder Make(int64_t num_examples, const DataOrder::Options& options) {
  auto order = DataOrder::Create(num_examples, options);
  EXPECT_THAT(order, IsOk());
  return *std::move(order);
}

// A run must read the same examples on every machine and in every version.
TEST(EpochPermutationTest, IsThisOne) {
  EXPECT_THAT(EpochPermutation(8, kSeed, 0, /*shuffle=*/true),
              ElementsAre(2, 0, 7, 1, 4, 5, 6, 3));
}

TEST(EpochPermutationTest, HoldsEveryIndexOnce) {
  for (const int64_t n : {0, 1, 2, 1000}) {
    std::vector<int64_t> permutation =
        EpochPermutation(n, kSeed, 3, /*shuffle=*/true);
    std::sort(permutation.begin(), permutation.end());
    EXPECT_EQ(permutation, EpochPermutation(n, kSeed, 3, /*shuffle=*/false));
  }
}

TEST(EpochPermutationTest, DependsOnSeedAndEpoch) {
  const auto first = EpochPermutation(1000, kSeed, 0, /*shuffle=*/true);
  EXPECT_EQ(EpochPermutation(1000, kSeed, 0, /*shuffle=*/true), first);
  EXPECT_NE(EpochPermutation(1000, kSeed, 1, /*shuffle=*/true), first);
  EXPECT_NE(EpochPermutation(1000, kSeed + 1, 0, /*shuffle=*/true), first);
}

TEST(EpochPermutationTest, PutsEachIndexAnywhere) {
  // Where index 0 lands in 6000 epochs of 6: binomial, standard deviation 29.
  constexpr int kEpochs = 6000;
  constexpr int kFiveDeviations = 145;
  std::vector<int> counts(6);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto permutation =
        EpochPermutation(6, kSeed, epoch, /*shuffle=*/true);
    ++counts[std::find(permutation.begin(), permutation.end(), 0) -
             permutation.begin()];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, kFiveDeviations);
}

TEST(DataOrderTest, CountsLockSteps) {
  EXPECT_EQ(Make(60000, Options(128, 0, 1)).steps_per_epoch(), 468);
  EXPECT_EQ(Make(60000, Options(128, 1, 2)).steps_per_epoch(), 234);
  EXPECT_EQ(Make(6, Options(3, 1, 2)).steps_per_epoch(), 1);
}

TEST(DataOrderTest, SlicesThePermutationByWorker) {
  const auto permutation = EpochPermutation(20, kSeed, 1, /*shuffle=*/true);
  DataOrder order = Make(20, Options(/*batch_size=*/3, /*worker_index=*/1, 2));
  ASSERT_EQ(order.steps_per_epoch(), 3);
  // The third step: rows 2*2*3 + 1*3 and on.
  EXPECT_THAT(order.Rows({1, 12}),
              ElementsAre(permutation[15], permutation[16], permutation[17]));
}

TEST(DataOrderTest, NoTwoWorkersShareAnExampleInAnEpoch) {
  std::set<int64_t> seen;
  for (int64_t worker = 0; worker < 3; ++worker) {
    DataOrder order = Make(100, Options(/*batch_size=*/4, worker, 3));
    for (int64_t step = 0; step < order.steps_per_epoch(); ++step) {
      for (const int64_t row : order.Rows({0, step * order.step_rows()})) {
        EXPECT_TRUE(seen.insert(row).second) << row;
      }
    }
  }
  EXPECT_EQ(seen.size(), 96);
}

// 2 workers of 2 towers that take 3 batches of 4 rows a step.
TEST(DataOrderTest, NoTwoTowersShareAnExampleInAnEpoch) {
  constexpr int64_t kBatch = 4;
  constexpr int64_t kBatches = 2 * 3;
  constexpr int64_t kWorkers = 2;
  constexpr int64_t kExamples = 200;
  const auto permutation = EpochPermutation(kExamples, kSeed, 0, true);
  std::set<int64_t> seen;
  for (int64_t worker = 0; worker < kWorkers; ++worker) {
    DataOrder::Options options = Options(kBatch, worker, kWorkers);
    options.batches_per_step = kBatches;
    DataOrder order = Make(kExamples, options);
    ASSERT_EQ(order.steps_per_epoch(), 4);
    for (int64_t step = 0; step < order.steps_per_epoch(); ++step) {
      const auto rows = order.Rows({0, step * order.step_rows()});
      ASSERT_EQ(rows.size(), kBatches * kBatch);
      const int64_t first = (step * kWorkers + worker) * kBatches * kBatch;
      for (size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i], permutation[first + i]);
        EXPECT_TRUE(seen.insert(rows[i]).second) << rows[i];
      }
    }
  }
  EXPECT_EQ(seen.size(), 192);
}

TEST(DataOrderTest, AnyStepMayBeAskedFirst) {
  DataOrder forward = Make(20, Options(3, 0, 2));
  for (int64_t rows = 0; rows < 18; rows += 6) forward.Rows({1, rows});
  DataOrder at_once = Make(20, Options(3, 0, 2));
  EXPECT_EQ(at_once.Rows({2, 6}), forward.Rows({2, 6}));
}

TEST(DataOrderTest, AnEpochMayBeGoneOnWithAtAnyRow) {
  const auto permutation = EpochPermutation(20, kSeed, 1, /*shuffle=*/true);
  DataOrder order = Make(20, Options(/*batch_size=*/3, /*worker_index=*/1, 2));
  EXPECT_THAT(order.Rows({1, 5}),
              ElementsAre(permutation[8], permutation[9], permutation[10]));
  EXPECT_EQ(order.After({1, 5}), (RowPosition{1, 11}));
  // The last that has a step left.
  EXPECT_EQ(order.After({1, 14}), (RowPosition{1, 20}));
}

TEST(DataOrderTest, TooFewRowsForAStepAreLeftOut) {
  DataOrder order = Make(20, Options(/*batch_size=*/3, /*worker_index=*/1, 2));
  for (const int64_t rows : {15, 20, 1000}) {
    EXPECT_EQ(order.After({1, rows}), (RowPosition{2, 6}));
    const auto next = order.Rows({1, rows});
    const std::vector<int64_t> taken(next.begin(), next.end());
    EXPECT_EQ(absl::MakeConstSpan(taken), order.Rows({2, 0}));
  }
}

TEST(DataOrderTest, NumbersTheSteps) {
  DataOrder order = Make(20, Options(/*batch_size=*/3, /*worker_index=*/1, 2));
  RowPosition position;
  for (uint64_t number = 1; number <= 10; ++number) {
    position = order.After(position);
    EXPECT_EQ(order.StepNumber(position), number);
  }
  // From any row on: other numbers for other steps.
  for (int64_t start = 0; start < 20; ++start) {
    position = {0, start};
    uint64_t last = 0;
    for (int step = 0; step < 10; ++step) {
      position = order.After(position);
      EXPECT_GT(order.StepNumber(position), last);
      last = order.StepNumber(position);
    }
  }
}

TEST(DataOrderTest, RefusesASetSmallerThanOneLockStep) {
  EXPECT_THAT(DataOrder::Create(255, Options(128, 0, 2)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("input.batch_size"),
                             HasSubstr("2 * 1 * 128"), HasSubstr("255"))));
}

TEST(DataOrderTest, SetsTooSmall_AreToldTheBatchThatFits) {
  DataOrder::Options options = Options(128, 0, 2);
  options.batches_per_step = 3;
  EXPECT_THAT(DataOrder::Create(255, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--set=input.batch_size=42,"),
                             HasSubstr("--set=input.global_batch_size=252"))));
  options.batch_size = 42;
  EXPECT_THAT(DataOrder::Create(255, options), IsOk());
  EXPECT_THAT(DataOrder::Create(5, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("fewer workers, towers")));
}

TEST(DataOrderTest, RefusesNumbersOutOfRange) {
  EXPECT_FALSE(DataOrder::Create(10, Options(0, 0, 1)).ok());
  EXPECT_FALSE(DataOrder::Create(10, Options(-1, 0, 1)).ok());
  EXPECT_FALSE(DataOrder::Create(10, Options(1, 1, 1)).ok());
  EXPECT_FALSE(DataOrder::Create(10, Options(1, -1, 1)).ok());
  EXPECT_FALSE(DataOrder::Create(10, Options(int64_t{1} << 62, 0, 8)).ok());
  DataOrder::Options options = Options(1, 0, 1);
  options.batches_per_step = 0;
  EXPECT_FALSE(DataOrder::Create(10, options).ok());
  options.batches_per_step = int64_t{1} << 62;
  EXPECT_FALSE(DataOrder::Create(10, options).ok());
}

}  // namespace
}  // namespace muster
