// On every instruction set of this machine, against the reference twin.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/fp16_ref.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"

namespace muster {
namespace {

constexpr uint32_t kSeed = 20;
constexpr double kLeastNormal = 0x1p-14;

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Every float's upper half with lower halves around a tie, every value of the
// codec and the middles between two with their neighbours, and random ones.
std::vector<float> InterestingValues() {
  std::vector<float> values;
  std::mt19937 random(kSeed);
  for (uint32_t upper = 0; upper < 0x10000u; ++upper) {
    for (const uint32_t lower : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0xffffu}) {
      values.push_back(FloatOf(upper << 16 | lower));
    }
    values.push_back(FloatOf(upper << 16 | (random() & 0xffffu)));
  }
  for (uint16_t half = 0; half < 0x7c00u; ++half) {
    const float value = FloatOfFp16Ref(half);
    const float next = half + 1 < 0x7c00 ? FloatOfFp16Ref(half + 1) : 65536.0f;
    const float middle = value + (next - value) / 2;
    for (const float near : {value, middle}) {
      values.push_back(std::nextafter(near, 0.0f));
      values.push_back(near);
      values.push_back(std::nextafter(near, 1e9f));
    }
  }
  for (size_t i = values.size(); i-- > 65536 * 7;) values.push_back(-values[i]);
  return values;
}

class Fp16Test : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~Fp16Test() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  const Codec& codec_ = *FindCodec("fp16").value();
};

std::vector<uint16_t> Encoded(const Codec& codec,
                              const std::vector<float>& values) {
  std::vector<uint16_t> encoded(values.size());
  codec.Encode(values.data(), static_cast<int64_t>(values.size()),
               reinterpret_cast<char*>(encoded.data()));
  return encoded;
}

TEST_P(Fp16Test, EncodesAsTheReference) {
  const std::vector<float> values = InterestingValues();
  std::vector<uint16_t> wanted;
  for (const float value : values) wanted.push_back(Fp16Ref(value));
  EXPECT_TRUE(Encoded(codec_, values) == wanted);
}

TEST_P(Fp16Test, DecodesAsTheReference) {
  std::vector<uint16_t> encoded;
  for (uint32_t i = 0; i < 0x10000u; ++i) {
    encoded.push_back(static_cast<uint16_t>(i));
  }
  std::vector<float> decoded(encoded.size());
  codec_.Decode(reinterpret_cast<const char*>(encoded.data()),
                static_cast<int64_t>(encoded.size()), decoded.data());
  for (size_t i = 0; i < encoded.size(); ++i) {
    const float wanted = FloatOfFp16Ref(encoded[i]);
    ASSERT_EQ(std::memcmp(&decoded[i], &wanted, sizeof(wanted)), 0) << i;
  }
}

TEST_P(Fp16Test, AnyLengthAndAnyAddress) {
  const std::vector<float> all = InterestingValues();
  for (int64_t n = 0; n <= 40; ++n) {
    const std::vector<float> values(all.begin() + 100000,
                                    all.begin() + 100000 + n);
    // One byte off any alignment, and a guard behind.
    std::vector<char> encoded(static_cast<size_t>(n * 2 + 2), 'x');
    codec_.Encode(values.data(), n, encoded.data() + 1);
    ASSERT_EQ(encoded.back(), 'x') << n;
    std::vector<float> decoded(static_cast<size_t>(n + 1), -1.0f);
    codec_.Decode(encoded.data() + 1, n, decoded.data());
    ASSERT_EQ(decoded.back(), -1.0f) << n;
    for (int64_t i = 0; i < n; ++i) {
      const float wanted = FloatOfFp16Ref(Fp16Ref(values[i]));
      ASSERT_EQ(std::memcmp(&decoded[i], &wanted, sizeof(wanted)), 0);
    }
  }
}

TEST_P(Fp16Test, KeepsItsBoundOnTheError) {
  const std::vector<float> values = InterestingValues();
  const std::vector<uint16_t> encoded = Encoded(codec_, values);
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const double decoded = FloatOfFp16Ref(encoded[i]);
    const double error = std::abs(decoded - value);
    if (std::abs(value) < kLeastNormal) {
      ASSERT_LE(error, codec_.absolute_error()) << value;
    } else if (std::abs(value) <= codec_.largest()) {
      ASSERT_LE(error, codec_.relative_error() * std::abs(value)) << value;
    } else if (std::isfinite(value)) {
      ASSERT_EQ(decoded, std::copysign(codec_.largest(), value)) << value;
    } else {
      ASSERT_EQ(std::isnan(decoded), std::isnan(value));
      ASSERT_EQ(std::isinf(decoded), std::isinf(value));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Targets, Fp16Test, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
    [](const auto& info) { return hwy::TargetName(info.param); });

TEST(Fp16RefTest, RoundsToNearestEvenAndStaysFinite) {
  EXPECT_EQ(Fp16Ref(1.0f), 0x3c00);
  EXPECT_EQ(Fp16Ref(-2.0f), 0xc000);
  // 1 + 2^-11 lies between 1 and 1 + 2^-10: the even one is 1.
  EXPECT_EQ(Fp16Ref(1.00048828125f), 0x3c00);
  // 1 + 3 * 2^-11 lies between 1 + 2^-10 and 1 + 2^-9: the even one is above.
  EXPECT_EQ(Fp16Ref(1.00146484375f), 0x3c02);
  EXPECT_EQ(Fp16Ref(65504.0f), 0x7bff);
  // IEEE 754 makes an infinity of it.
  EXPECT_EQ(Fp16Ref(65520.0f), 0x7bff);
  EXPECT_EQ(Fp16Ref(-1e30f), 0xfbff);
  EXPECT_EQ(Fp16Ref(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(Fp16Ref(0.0f), 0);
  EXPECT_EQ(Fp16Ref(-0.0f), 0x8000);
}

TEST(Fp16RefTest, RoundsBelowTheNormalRange) {
  EXPECT_EQ(Fp16Ref(0x1p-14f), 0x0400);
  EXPECT_EQ(Fp16Ref(0x1p-24f), 0x0001);
  // Half of the smallest: the even one is 0; a little more is the smallest.
  EXPECT_EQ(Fp16Ref(0x1p-25f), 0x0000);
  EXPECT_EQ(Fp16Ref(0x1.000002p-25f), 0x0001);
  EXPECT_EQ(Fp16Ref(-0x1.8p-24f), 0x8002);
  // Rounds up into the normal range.
  EXPECT_EQ(Fp16Ref(0x1.fffffep-15f), 0x0400);
  EXPECT_EQ(FloatOfFp16Ref(0x0001), 0x1p-24f);
  EXPECT_EQ(FloatOfFp16Ref(0x83ff), -1023 * 0x1p-24f);
  EXPECT_EQ(FloatOfFp16Ref(0x0400), 0x1p-14f);
}

}  // namespace
}  // namespace muster
