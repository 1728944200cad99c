#include "worker/backend/cpu/winograd5x5_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace muster {
namespace {

constexpr uint32_t kSeed = 25;
constexpr int64_t kWindow = 5;

// float32 sums of `terms` products of values below 1, and of the 36 values of a
// tile before and after them.
double Tolerance(int64_t terms) {
  return std::numeric_limits<float>::epsilon() *
         (36 + static_cast<double>(terms));
}

std::vector<float> Random(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> steps(-2048, 2047);
  std::vector<float> values(n);
  for (float& value : values) value = steps(random) / 2048.0f;
  return values;
}

int64_t At(int64_t channels, int64_t height, int64_t width, int64_t block,
           int64_t n, int64_t c, int64_t y, int64_t x) {
  const int64_t plane = n * (channels / block) + c / block;
  return ((plane * height + y) * width + x) * block + c % block;
}

int64_t SrcAt(const Winograd5x5Shape& s, int64_t n, int64_t c, int64_t y,
              int64_t x) {
  return At(s.src_channels, s.src_height, s.src_width, s.block, n, c, y, x);
}

int64_t DstAt(const Winograd5x5Shape& s, int64_t n, int64_t c, int64_t y,
              int64_t x) {
  return At(s.dst_channels, s.dst_height, s.dst_width, s.block, n, c, y, x);
}

int64_t WeightAt(const Winograd5x5Shape& s, int64_t o, int64_t i, int64_t ky,
                 int64_t kx) {
  return ((o * s.src_channels + i) * kWindow + ky) * kWindow + kx;
}

int64_t SrcSize(const Winograd5x5Shape& s) {
  return s.batch * s.src_channels * s.src_height * s.src_width;
}

int64_t DstSize(const Winograd5x5Shape& s) {
  return s.batch * s.dst_channels * s.dst_height * s.dst_width;
}

int64_t WeightsSize(const Winograd5x5Shape& s) {
  return s.weights() * kWindow * kWindow;
}

// Calls term(src, dst, weight) for the places of each product of the sum.
template <typename Term>
void ForTerms(const Winograd5x5Shape& s, Term term) {
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t o = 0; o < s.dst_channels; ++o) {
      for (int64_t i = 0; i < s.src_channels; ++i) {
        for (int64_t t = 0; t < s.dst_height * s.dst_width * 25; ++t) {
          const int64_t kx = t % 5, ky = t / 5 % 5;
          const int64_t x = t / 25 % s.dst_width, y = t / 25 / s.dst_width;
          const int64_t from_y = y + ky - s.pad_top;
          const int64_t from_x = x + kx - s.pad_left;
          if (from_y < 0 || from_y >= s.src_height || from_x < 0 ||
              from_x >= s.src_width) {
            continue;
          }
          term(SrcAt(s, n, i, from_y, from_x), DstAt(s, n, o, y, x),
               WeightAt(s, o, i, ky, kx));
        }
      }
    }
  }
}

void ExpectNear(const std::vector<float>& found,
                const std::vector<double>& wanted, double tolerance,
                const char* what) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_LE(std::abs(found[i] - wanted[i]), tolerance)
        << what << "[" << i << "] is " << found[i] << ", not " << wanted[i];
  }
}

class Winograd5x5KernelTest : public testing::TestWithParam<Winograd5x5Shape> {
 protected:
  // The target chosen last stays: give the choice back.
  ~Winograd5x5KernelTest() override { hwy::SetSupportedTargetsForTest(0); }

  // In two parts, as two threads would.
  std::vector<float> Convolve(const std::vector<float>& bias, bool relu) {
    std::vector<float> transformed(WinogradWeightsFloats(shape_));
    WinogradTransformWeights(shape_, WinogradPass::kForward, weights_.data(),
                             transformed.data());
    std::vector<float> scratch(WinogradScratchFloats(shape_), NAN);
    std::vector<float> dst(DstSize(shape_), NAN);
    for (const int64_t begin : {int64_t{0}, kWinogradTiles}) {
      const int64_t end = begin == 0 ? kWinogradTiles : shape_.tiles();
      WinogradConvolve(shape_, begin, std::min(end, shape_.tiles()),
                       src_.data(), transformed.data(),
                       bias.empty() ? nullptr : bias.data(), relu,
                       scratch.data(), dst.data());
    }
    return dst;
  }

  void ExpectForward() {
    const std::vector<float> bias = Random(shape_.dst_channels, kSeed + 2);
    std::vector<double> wanted(DstSize(shape_));
    ForTerms(shape_, [&](int64_t src, int64_t dst, int64_t weight) {
      wanted[dst] += static_cast<double>(src_[src]) * weights_[weight];
    });
    const double tolerance = Tolerance(25 * shape_.src_channels);
    ExpectNear(Convolve({}, /*relu=*/false), wanted, tolerance, "dst");
    const int64_t plane = shape_.dst_height * shape_.dst_width * shape_.block;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const int64_t channel =
          i / plane * shape_.block % shape_.dst_channels + i % shape_.block;
      wanted[i] = std::max(0.0, wanted[i] + bias[channel]);
    }
    ExpectNear(Convolve(bias, /*relu=*/true), wanted, tolerance, "relu dst");
  }

  void ExpectBackwardData() {
    const Winograd5x5Shape& s = shape_;
    const Winograd5x5Shape back = {s.batch,      s.dst_channels, s.src_channels,
                                   s.dst_height, s.dst_width,    s.src_height,
                                   s.src_width,  4 - s.pad_top,  4 - s.pad_left,
                                   s.block};
    std::vector<float> transformed(WinogradWeightsFloats(back));
    WinogradTransformWeights(back, WinogradPass::kBackwardData, weights_.data(),
                             transformed.data());
    std::vector<float> scratch(WinogradScratchFloats(back), NAN);
    std::vector<float> diff_src(SrcSize(s), NAN);
    WinogradConvolve(back, 0, back.tiles(), diff_dst_.data(),
                     transformed.data(), /*bias=*/nullptr, /*relu=*/false,
                     scratch.data(), diff_src.data());
    std::vector<double> wanted(SrcSize(s));
    ForTerms(s, [&](int64_t src, int64_t dst, int64_t weight) {
      wanted[src] += static_cast<double>(diff_dst_[dst]) * weights_[weight];
    });
    ExpectNear(diff_src, wanted, Tolerance(25 * s.dst_channels), "diff_src");
  }

  void ExpectBackwardWeights() {
    std::vector<float> scratch(WinogradScratchFloats(shape_), NAN);
    std::vector<float> sums(WinogradSumsFloats(shape_), NAN);
    WinogradSumGradients(shape_, 0, shape_.tiles(), src_.data(),
                         diff_dst_.data(), scratch.data(), sums.data());
    std::vector<float> diff_weights(WeightsSize(shape_), NAN);
    WinogradFinishGradient(shape_, sums.data(), diff_weights.data());
    std::vector<double> wanted(WeightsSize(shape_));
    ForTerms(shape_, [&](int64_t src, int64_t dst, int64_t weight) {
      wanted[weight] += static_cast<double>(src_[src]) * diff_dst_[dst];
    });
    const int64_t terms = DstSize(shape_) / shape_.dst_channels;
    ExpectNear(diff_weights, wanted, Tolerance(terms), "diff_weights");
    std::vector<double> bias(shape_.dst_channels);
    const int64_t plane = shape_.dst_height * shape_.dst_width * shape_.block;
    for (int64_t i = 0; i < DstSize(shape_); ++i) {
      bias[i / plane * shape_.block % shape_.dst_channels + i % shape_.block] +=
          diff_dst_[i];
    }
    ExpectNear({sums.end() - shape_.dst_channels, sums.end()}, bias,
               Tolerance(terms), "diff_bias");
  }

  const Winograd5x5Shape shape_ = GetParam();
  const std::vector<float> src_ = Random(SrcSize(shape_), kSeed);
  const std::vector<float> weights_ = Random(WeightsSize(shape_), kSeed + 1);
  const std::vector<float> diff_dst_ = Random(DstSize(shape_), kSeed + 3);
};

TEST_P(Winograd5x5KernelTest, AgreesWithTheSumOnEveryInstructionSet) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    ExpectForward();
    ExpectBackwardData();
    ExpectBackwardWeights();
  }
}

// batch, channels, src and dst sizes, pads, block.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Winograd5x5KernelTest,
    testing::Values(Winograd5x5Shape{2, 16, 32, 6, 8, 6, 8, 2, 2, 8},
                    Winograd5x5Shape{2, 32, 16, 6, 8, 6, 8, 2, 2, 16},
                    // Odd, with half tiles at the borders.
                    Winograd5x5Shape{3, 16, 16, 7, 9, 5, 7, 1, 1, 16},
                    // A whole window of padding; one source.
                    Winograd5x5Shape{1, 48, 16, 1, 1, 5, 1, 4, 2, 8},
                    // Every width of the product: 4, 2 and 1 vectors.
                    Winograd5x5Shape{1, 16, 112, 5, 5, 1, 1, 0, 0, 16}));

TEST(Winograd5x5KernelNanTest, KeepsANanThatItMeets) {
  const Winograd5x5Shape shape = {1, 16, 16, 6, 6, 6, 6, 2, 2, 8};
  std::vector<float> src(SrcSize(shape), 1), dst(DstSize(shape));
  src[SrcAt(shape, 0, 3, 2, 2)] = NAN;
  std::vector<float> transformed(WinogradWeightsFloats(shape), 1);
  std::vector<float> scratch(WinogradScratchFloats(shape));
  WinogradConvolve(shape, 0, shape.tiles(), src.data(), transformed.data(),
                   /*bias=*/nullptr, /*relu=*/false, scratch.data(),
                   dst.data());
  EXPECT_TRUE(std::isnan(dst[DstAt(shape, 0, 0, 2, 2)]));
}

}  // namespace
}  // namespace muster
