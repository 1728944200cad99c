#include "worker/backend/cuda/target_loss_kernel.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/host_stream.h"

namespace muster {
namespace {

using testing::ElementsAre;

struct Result {
  double loss = -1;
  int64_t correct = -1;
  std::vector<float> diff_src;
};

Result RunOn(const std::vector<float>& src, const std::vector<float>& targets,
             int64_t outputs, int64_t rows, bool is_cross_entropy,
             const std::vector<float>& weights = {}) {
  const int64_t batch = static_cast<int64_t>(src.size()) / outputs;
  Result result;
  result.diff_src.assign(src.size(), NAN);
  std::vector<double> losses(batch);
  std::vector<int64_t> hits(batch);
  TargetLossMemory memory;
  memory.src = src.data();
  memory.targets = targets.data();
  memory.loss = &result.loss;
  memory.correct = &result.correct;
  memory.diff_src = result.diff_src.data();
  memory.row_losses = losses.data();
  memory.row_hits = hits.data();
  memory.is_cross_entropy = is_cross_entropy;
  if (!weights.empty()) memory.weights = weights.data();
  const HostStream stream;
  EXPECT_THAT(TargetLoss(stream.get(), batch, outputs, rows, memory), IsOk());
  return result;
}

TEST(TargetLossKernelTest, SquaredErrorsAreAMeanOverRowsAndOutputs) {
  const Result found = RunOn({1, 2, 3, 4, 9, 9}, {1, 4, 2, 8, 0, 0},
                             /*outputs=*/2, /*rows=*/2, false);
  EXPECT_DOUBLE_EQ(found.loss, 21.0 / 4);
  EXPECT_THAT(found.diff_src, ElementsAre(0, -1, 0.5, -2, 0, 0));
}

TEST(TargetLossKernelTest, RowsWeighTheirLossAndGradient) {
  const Result found = RunOn({1, 2, 3, 4, 9, 9}, {1, 4, 2, 8, 0, 0},
                             /*outputs=*/2, /*rows=*/2, false, {3, 0.5, 7});
  EXPECT_DOUBLE_EQ(found.loss, (3 * 4 + 0.5 * 17) / 4);
  EXPECT_THAT(found.diff_src, ElementsAre(0, -3, 0.25, -1, 0, 0));
}

TEST(TargetLossKernelTest, CrossEntropyDoesNotOverflowAndCountsWholeRows) {
  const Result found = RunOn({200, -200, 0, 0}, {1, 0, 0, 1}, /*outputs=*/2,
                             /*rows=*/2, true);
  EXPECT_NEAR(found.loss, 2 * std::log(2) / 4, 1e-6);
  EXPECT_EQ(found.correct, 1);
  EXPECT_THAT(found.diff_src, ElementsAre(0, 0, 0.125, -0.125));
}

TEST(TargetLossKernelTest, ManyRowsAreSummed) {
  constexpr int64_t kRows = 1000;
  const Result found =
      RunOn(std::vector<float>(kRows, 3), std::vector<float>(kRows, 1),
            /*outputs=*/1, kRows, false);
  EXPECT_DOUBLE_EQ(found.loss, 4);
}

}  // namespace
}  // namespace muster
