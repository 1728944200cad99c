#include "worker/backend/cpu/one_channel_kernel.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace muster {
namespace {

constexpr int64_t kBatch = 3;

// float32 sums of so many products of values below 1.
double Tolerance(int64_t terms) {
  return std::numeric_limits<float>::epsilon() * static_cast<double>(terms);
}

std::vector<float> Random(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> steps(-2048, 2047);
  std::vector<float> values(n);
  for (float& value : values) value = steps(random) / 2048.0f;
  return values;
}

class OneChannelKernelTest : public testing::TestWithParam<OneChannelShape> {
 protected:
  // The target chosen last stays: give the choice back.
  ~OneChannelKernelTest() override { hwy::SetSupportedTargetsForTest(0); }

  int64_t dst_size() const {
    return shape_.channels * shape_.dst_height * shape_.dst_width;
  }
  double Src(int64_t n, int64_t y, int64_t x) const {
    if (y < 0 || y >= shape_.src_height || x < 0 || x >= shape_.src_width) {
      return 0;
    }
    return src_[(n * shape_.src_height + y) * shape_.src_width + x];
  }
  double DiffDst(int64_t n, int64_t o, int64_t y, int64_t x) const {
    const int64_t plane =
        n * (shape_.channels / kOneChannelBlock) + o / kOneChannelBlock;
    return diff_dst_[((plane * shape_.dst_height + y) * shape_.dst_width + x) *
                         kOneChannelBlock +
                     o % kOneChannelBlock];
  }
  // For the images [begin, end): the window's taps, then the bias.
  double Wanted(int64_t tap, int64_t o, int64_t begin, int64_t end) const {
    double sum = 0;
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t y = 0; y < shape_.dst_height; ++y) {
        for (int64_t x = 0; x < shape_.dst_width; ++x) {
          const double src = tap == kOneChannelTaps
                                 ? 1.0
                                 : Src(n, y + tap / 5 - shape_.pad_top,
                                       x + tap % 5 - shape_.pad_left);
          sum += src * DiffDst(n, o, y, x);
        }
      }
    }
    return sum;
  }
  void ExpectSumOf(int64_t begin, int64_t end) const {
    std::vector<float> scratch(OneChannelScratchFloats(shape_), NAN);
    std::vector<float> sums(OneChannelSumsFloats(shape_), NAN);
    SumOneChannelGradients(shape_, begin, end, src_.data(), diff_dst_.data(),
                           scratch.data(), sums.data());
    const int64_t terms = kBatch * shape_.dst_height * shape_.dst_width;
    for (int64_t tap = 0; tap <= kOneChannelTaps; ++tap) {
      for (int64_t o = 0; o < shape_.channels; ++o) {
        ASSERT_NEAR(sums[tap * shape_.channels + o], Wanted(tap, o, begin, end),
                    Tolerance(terms))
            << "tap " << tap << " of channel " << o;
      }
    }
  }

  const OneChannelShape shape_ = GetParam();
  const std::vector<float> src_ =
      Random(kBatch * shape_.src_height * shape_.src_width, /*seed=*/1);
  const std::vector<float> diff_dst_ = Random(kBatch * dst_size(), /*seed=*/2);
};

TEST_P(OneChannelKernelTest, AgreesWithTheSumOnEveryInstructionSet) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    ExpectSumOf(0, kBatch);
    ExpectSumOf(1, 2);
    ExpectSumOf(2, 2);
  }
}

// Channels, src and dst sizes, pads.
INSTANTIATE_TEST_SUITE_P(
    Shapes, OneChannelKernelTest,
    testing::Values(OneChannelShape{32, 7, 9, 7, 9, 2, 2},
                    // One block, and one behind a pair.
                    OneChannelShape{8, 5, 6, 1, 2, 0, 0},
                    OneChannelShape{24, 5, 5, 3, 4, 1, 2},
                    // A whole window of padding; one source.
                    OneChannelShape{16, 1, 1, 5, 1, 4, 2}));

}  // namespace
}  // namespace muster
