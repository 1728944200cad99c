#include "worker/backend/cuda/softmax_cross_entropy_kernel.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/host_stream.h"
#include "tests/worker/backend/primitive_run.h"

namespace muster {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr uint64_t kSeed = 3;
constexpr double kRelative = 1e-5;

struct Entropy {
  double loss = -1;
  int64_t correct = -1;
  std::vector<float> diff_src;
};

Entropy RunOn(const std::vector<float>& src, const std::vector<int32_t>& labels,
              int64_t rows, const std::vector<float>& weights = {}) {
  const auto batch = static_cast<int64_t>(labels.size());
  Entropy result;
  result.diff_src.assign(src.size(), NAN);
  std::vector<double> losses(batch);
  std::vector<int64_t> hits(batch);
  SoftmaxCrossEntropyMemory memory = {
      src.data(),      labels.data(),          &result.loss,
      &result.correct, result.diff_src.data(), losses.data(),
      hits.data()};
  if (!weights.empty()) memory.weights = weights.data();
  const HostStream stream;
  EXPECT_THAT(SoftmaxCrossEntropy(stream.get(), batch,
                                  static_cast<int64_t>(src.size()) / batch,
                                  rows, memory),
              IsOk());
  return result;
}

void ExpectAsTheFormula(int64_t batch, int64_t classes, int64_t rows) {
  SCOPED_TRACE(absl::StrCat(rows, " of ", batch, " x ", classes));
  const Values values = RandomValues(batch * classes, kSeed);
  std::vector<int32_t> labels(batch);
  Values diff(batch * classes);
  double loss = 0;
  int64_t correct = 0;
  for (int64_t n = 0; n < rows; ++n) {
    labels[n] = static_cast<int32_t>(n * 7 % classes);
    const double* row = values.data() + n * classes;
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) sum += std::exp(row[k]);
    loss += (std::log(sum) - row[labels[n]]) / static_cast<double>(rows);
    correct += std::max_element(row, row + classes) - row == labels[n] ? 1 : 0;
    for (int64_t k = 0; k < classes; ++k) {
      diff[n * classes + k] =
          (std::exp(row[k]) / sum - (k == labels[n] ? 1 : 0)) /
          static_cast<double>(rows);
    }
  }
  const Entropy found = RunOn({values.begin(), values.end()}, labels, rows);
  EXPECT_NEAR(found.loss, loss, kRelative);
  EXPECT_EQ(found.correct, correct);
  ExpectNear({found.diff_src.begin(), found.diff_src.end()}, diff,
             SumTolerance(1) / static_cast<double>(rows), kRelative,
             "diff_src");
}

// Classes and rows around the numbers of threads.
TEST(SoftmaxCrossEntropyKernelTest, AsTheFormula) {
  ExpectAsTheFormula(1, 1, 1);
  ExpectAsTheFormula(1, 2, 1);
  ExpectAsTheFormula(3, 31, 2);
  ExpectAsTheFormula(3, 32, 3);
  ExpectAsTheFormula(5, 33, 1);
  ExpectAsTheFormula(2, 1000, 2);
  ExpectAsTheFormula(257, 3, 256);
  ExpectAsTheFormula(kMostBlocks + 3, 2, kMostBlocks + 2);
}

TEST(SoftmaxCrossEntropyKernelTest, RowsWeighTheirLossAndGradient) {
  const Entropy found = RunOn({0, 0, 0, 0, 0, 0}, {1, 0, 0}, 2, {3, 0.5, 9});
  EXPECT_NEAR(found.loss, 3.5 * std::log(2) / 2, kRelative);
  EXPECT_THAT(found.diff_src, ElementsAre(0.75, -0.75, -0.125, 0.125, 0, 0));
}

TEST(SoftmaxCrossEntropyKernelTest, TheFirstOfEqualsIsTheLargest) {
  std::vector<float> src(100, 1);
  EXPECT_EQ(RunOn(src, {0}, 1).correct, 1);
  EXPECT_EQ(RunOn(src, {1}, 1).correct, 0);
  src[33] = src[66] = src[97] = 2;
  EXPECT_EQ(RunOn(src, {33}, 1).correct, 1);
  EXPECT_EQ(RunOn(src, {66}, 1).correct, 0);
}

TEST(SoftmaxCrossEntropyKernelTest, LargeLogitsDoNotOverflow) {
  const Entropy found = RunOn({3e38f, -3e38f, 0}, {0}, 1);
  EXPECT_EQ(found.loss, 0);
  EXPECT_THAT(found.diff_src, Each(0));
}

TEST(SoftmaxCrossEntropyKernelTest, RowsBeyondTheLastHaveNoGradient) {
  const Entropy found = RunOn({0, 0, NAN, NAN}, {1, -1}, 1);
  EXPECT_NEAR(found.loss, std::log(2), kRelative);
  EXPECT_THAT(found.diff_src, ElementsAre(0.5, -0.5, 0, 0));
}

TEST(SoftmaxCrossEntropyKernelTest, ALabelOutOfRangeReadsNothing) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  for (const int32_t label : {kLeast, -1, 2, kMost}) {
    const Entropy found = RunOn({1, 0}, {label}, 1);
    EXPECT_TRUE(std::isnan(found.loss));
    EXPECT_EQ(found.correct, 0);
  }
}

TEST(SoftmaxCrossEntropyKernelTest, NanMakesTheLossNan) {
  EXPECT_TRUE(std::isnan(RunOn({0, NAN, 1}, {0}, 1).loss));
}

}  // namespace
}  // namespace muster
