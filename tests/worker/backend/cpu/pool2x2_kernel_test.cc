#include "worker/backend/cpu/pool2x2_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace muster {
namespace {

constexpr uint32_t kSeed = 3;

struct Result {
  std::vector<float> dst, diff_src;
  std::vector<uint8_t> workspace;
};

std::vector<float> Random(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  // Few values, so that many maxima are ties.
  std::uniform_int_distribution<int> values(-4, 3);
  std::vector<float> result(n);
  for (float& value : result) value = static_cast<float>(values(random));
  return result;
}

// The kernel's work, one element at a time.
Result Plain(const Pool2x2Shape& s, bool relu, const std::vector<float>& src,
             const std::vector<float>& diff_dst) {
  const int64_t rows = s.height / 2, columns = s.width / 2;
  Result result;
  result.diff_src.resize(src.size());
  for (int64_t i = 0; i < s.planes * rows * columns * s.block; ++i) {
    const int64_t c = i % s.block, x = i / s.block % columns;
    const int64_t y = i / s.block / columns % rows;
    const int64_t plane = i / s.block / columns / rows;
    int64_t at[4];
    for (int k = 0; k < 4; ++k) {
      at[k] = ((plane * s.height + 2 * y + k / 2) * s.width + 2 * x + k % 2) *
                  s.block +
              c;
    }
    int best = 0;
    for (int k = 1; k < 4; ++k) best = src[at[k]] > src[at[best]] ? k : best;
    const bool cut = relu && src[at[best]] <= 0;
    result.dst.push_back(cut ? 0 : src[at[best]]);
    result.workspace.push_back(cut ? kNoneKept : best);
    if (!cut) result.diff_src[at[best]] = diff_dst[i];
  }
  return result;
}

class Pool2x2KernelTest : public testing::TestWithParam<Pool2x2Shape> {
 protected:
  // The target chosen last stays: give the choice back.
  ~Pool2x2KernelTest() override { hwy::SetSupportedTargetsForTest(0); }

  void ExpectPlain(bool relu) {
    const Pool2x2Shape& s = GetParam();
    const auto src = Random(s.planes * s.height * s.width * s.block, kSeed);
    const int64_t n = s.planes * (s.height / 2) * (s.width / 2) * s.block;
    const auto diff_dst = Random(n, kSeed + 1);
    const Result wanted = Plain(s, relu, src, diff_dst);
    Result found;
    found.dst.resize(n);
    found.workspace.resize(n);
    found.diff_src.assign(src.size(), -1);
    // In two parts, as two threads would.
    const int64_t half = s.planes / 2;
    for (const auto& [begin, end] :
         {std::pair<int64_t, int64_t>{0, half}, {half, s.planes}}) {
      MaxPool2x2Forward(s, relu, begin, end, src.data(), found.dst.data(),
                        found.workspace.data());
      MaxPool2x2Backward(s, begin, end, diff_dst.data(), found.workspace.data(),
                         found.diff_src.data());
    }
    EXPECT_EQ(found.dst, wanted.dst);
    EXPECT_EQ(found.workspace, wanted.workspace);
    EXPECT_EQ(found.diff_src, wanted.diff_src);
  }
};

// Every instruction set that this machine has.
TEST_P(Pool2x2KernelTest, AgreesWithPlainLoopsOnEveryInstructionSet) {
  hwy::SetSupportedTargetsForTest(0);
  const int64_t all = hwy::SupportedTargets();
  int tried = 0;
  for (int64_t rest = all; rest != 0; rest &= rest - 1, ++tried) {
    const int64_t target = rest & -rest;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    ExpectPlain(/*relu=*/true);
    ExpectPlain(/*relu=*/false);
  }
  EXPECT_GE(tried, 1);
}

TEST_P(Pool2x2KernelTest, WorksWithoutWorkspace) {
  const Pool2x2Shape& s = GetParam();
  const auto src = Random(s.planes * s.height * s.width * s.block, kSeed);
  const int64_t n = s.planes * (s.height / 2) * (s.width / 2) * s.block;
  std::vector<float> dst(n);
  MaxPool2x2Forward(s, /*relu=*/true, 0, s.planes, src.data(), dst.data(),
                    nullptr);
  EXPECT_EQ(dst, Plain(s, true, src, std::vector<float>(n)).dst);
}

// One window, whose elements from `at` on are NaN, the rest infinite or below.
TEST(Pool2x2KernelNanTest, TakesTheFirstNan) {
  const Pool2x2Shape one = {1, 2, 2, 8};
  for (const float rest : {HUGE_VALF, 1.0f, -1.0f, -HUGE_VALF}) {
    for (int at = 0; at < 4; ++at) {
      for (const int nans : {1, 4 - at}) {
        std::vector<float> src(4 * one.block, rest), dst(one.block);
        std::fill_n(src.begin() + at * one.block, nans * one.block, NAN);
        for (const bool relu : {false, true}) {
          std::vector<uint8_t> workspace(one.block);
          MaxPool2x2Forward(one, relu, 0, 1, src.data(), dst.data(),
                            workspace.data());
          EXPECT_THAT(dst, testing::Each(testing::IsNan())) << at;
          EXPECT_THAT(workspace, testing::Each(at)) << rest;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Pool2x2KernelTest,
                         testing::Values(Pool2x2Shape{1, 2, 2, 8},
                                         Pool2x2Shape{3, 7, 5, 8},
                                         Pool2x2Shape{2, 6, 9, 16},
                                         Pool2x2Shape{5, 14, 14, 16}));

}  // namespace
}  // namespace muster
