#include "worker/backend/cuda/cast_kernel.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/host_stream.h"

namespace muster {
namespace {

constexpr int kPatterns = 1 << 16;
constexpr uint16_t kInfinity = 0x7F80;

bool IsNan(uint16_t bf16) { return (bf16 & 0x7FFF) > kInfinity; }

class CastKernelTest : public testing::Test {
 protected:
  std::vector<float> FromBf16(const std::vector<uint16_t>& src) {
    std::vector<float> dst(src.size());
    EXPECT_THAT(CastFromBf16(stream_.get(), src.data(), dst.data(),
                             static_cast<int64_t>(src.size())),
                IsOk());
    return dst;
  }
  std::vector<uint16_t> ToBf16(const std::vector<float>& src) {
    std::vector<uint16_t> dst(src.size());
    EXPECT_THAT(CastToBf16(stream_.get(), src.data(), dst.data(),
                           static_cast<int64_t>(src.size())),
                IsOk());
    return dst;
  }
  static std::vector<uint16_t> AllPatterns() {
    std::vector<uint16_t> all(kPatterns);
    for (int i = 0; i < kPatterns; ++i) all[i] = static_cast<uint16_t>(i);
    return all;
  }

  HostStream stream_;
};

TEST_F(CastKernelTest, EveryPatternComesBack) {
  const std::vector<float> floats = FromBf16(AllPatterns());
  const std::vector<uint16_t> back = ToBf16(floats);
  for (int i = 0; i < kPatterns; ++i) {
    const auto pattern = static_cast<uint16_t>(i);
    if (IsNan(pattern)) {
      EXPECT_TRUE(std::isnan(floats[i])) << i;
      EXPECT_TRUE(IsNan(back[i])) << i;
    } else {
      ASSERT_EQ(back[i], pattern);
    }
  }
}

// Between each positive number and the next one up, which is infinity at last.
TEST_F(CastKernelTest, RoundsToNearestAndTiesToEven) {
  const std::vector<float> floats = FromBf16(AllPatterns());
  std::vector<float> below, tie, above;
  for (int i = 0; i < kInfinity; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &floats[i], sizeof(bits));
    for (const auto& [to, rest] :
         {std::make_pair(&below, 0x7FFFu), std::make_pair(&tie, 0x8000u),
          std::make_pair(&above, 0x8001u)}) {
      const uint32_t sum = bits + rest;
      float value;
      std::memcpy(&value, &sum, sizeof(value));
      to->push_back(value);
    }
  }
  const auto down = ToBf16(below), even = ToBf16(tie), up = ToBf16(above);
  for (int i = 0; i < kInfinity; ++i) {
    ASSERT_EQ(down[i], i);
    ASSERT_EQ(even[i], i % 2 == 0 ? i : i + 1);
    ASSERT_EQ(up[i], i + 1);
  }
}

TEST_F(CastKernelTest, KeepsNanWhosePayloadIsCutOff) {
  const uint32_t bits = 0xFF800001;
  float nan;
  std::memcpy(&nan, &bits, sizeof(nan));
  const uint16_t cast = ToBf16({nan})[0];
  EXPECT_TRUE(IsNan(cast));
  EXPECT_EQ(cast >> 15, 1);
}

TEST_F(CastKernelTest, TakesMoreElementsThanTheGridHasThreads) {
  std::vector<float> src(kMostBlocks * kBlockThreads + 3, 2.0f);
  src.back() = 3;
  const std::vector<float> back = FromBf16(ToBf16(src));
  EXPECT_EQ(back, src);
}

TEST_F(CastKernelTest, SaysWhatCouldNotBeLaunched) {
  stream_.FailAfter(0);
  EXPECT_THAT(CastToBf16(stream_.get(), nullptr, nullptr, 0),
              StatusIs(absl::StatusCode::kInternal,
                       testing::HasSubstr("launch CastToBf16: CUDA says no")));
}

}  // namespace
}  // namespace muster
