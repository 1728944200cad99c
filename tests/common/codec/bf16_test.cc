// On every instruction set of this machine, against the reference twin.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "common/codec/bf16_ref.h"
#include "common/codec/codec.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"

namespace muster {
namespace {

constexpr uint32_t kSeed = 20;

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Every upper half with lower halves around a tie, and random ones.
std::vector<float> InterestingValues() {
  std::vector<float> values;
  std::mt19937 random(kSeed);
  for (uint32_t upper = 0; upper < 0x10000u; ++upper) {
    for (const uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(FloatOf(upper << 16 | lower));
    }
    values.push_back(FloatOf(upper << 16 | (random() & 0xffffu)));
  }
  return values;
}

class Bf16Test : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~Bf16Test() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  const Codec& codec_ = *FindCodec("bf16").value();
};

std::vector<uint16_t> Encoded(const Codec& codec,
                              const std::vector<float>& values) {
  std::vector<uint16_t> encoded(values.size());
  codec.Encode(values.data(), static_cast<int64_t>(values.size()),
               reinterpret_cast<char*>(encoded.data()));
  return encoded;
}

TEST_P(Bf16Test, EncodesAsTheReference) {
  const std::vector<float> values = InterestingValues();
  std::vector<uint16_t> wanted;
  for (const float value : values) wanted.push_back(Bf16Ref(value));
  EXPECT_TRUE(Encoded(codec_, values) == wanted);
}

TEST_P(Bf16Test, DecodesAsTheReference) {
  std::vector<uint16_t> encoded;
  for (uint32_t i = 0; i < 0x10000u; ++i) {
    encoded.push_back(static_cast<uint16_t>(i));
  }
  std::vector<float> decoded(encoded.size());
  codec_.Decode(reinterpret_cast<const char*>(encoded.data()),
                static_cast<int64_t>(encoded.size()), decoded.data());
  for (size_t i = 0; i < encoded.size(); ++i) {
    const float wanted = FloatOfBf16Ref(encoded[i]);
    ASSERT_EQ(std::memcmp(&decoded[i], &wanted, sizeof(wanted)), 0) << i;
  }
}

TEST_P(Bf16Test, AnyLengthAndAnyAddress) {
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
      const float wanted = FloatOfBf16Ref(Bf16Ref(values[i]));
      ASSERT_EQ(std::memcmp(&decoded[i], &wanted, sizeof(wanted)), 0);
    }
  }
}

TEST_P(Bf16Test, KeepsItsBoundOnTheError) {
  const std::vector<float> values = InterestingValues();
  const std::vector<uint16_t> encoded = Encoded(codec_, values);
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const double decoded = FloatOfBf16Ref(encoded[i]);
    if (std::isfinite(value)) {
      ASSERT_LE(
          std::abs(decoded - value),
          codec_.relative_error() * std::abs(value) + codec_.absolute_error())
          << value;
    } else {
      ASSERT_EQ(std::isnan(decoded), std::isnan(value));
      ASSERT_EQ(std::isinf(decoded), std::isinf(value));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Targets, Bf16Test, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
    [](const auto& info) { return hwy::TargetName(info.param); });

TEST(Bf16RefTest, RoundsToNearestEvenAndStaysFinite) {
  EXPECT_EQ(Bf16Ref(1.0f), 0x3f80);
  EXPECT_EQ(Bf16Ref(-2.0f), 0xc000);
  // 1 + 2^-8 lies between 1 and 1 + 2^-7: the even one is 1.
  EXPECT_EQ(Bf16Ref(1.00390625f), 0x3f80);
  // 1 + 3 * 2^-8 lies between 1 + 2^-7 and 1 + 2^-6: the even one is above.
  EXPECT_EQ(Bf16Ref(1.01171875f), 0x3f82);
  EXPECT_EQ(Bf16Ref(std::numeric_limits<float>::max()), 0x7f7f);
  EXPECT_EQ(Bf16Ref(-std::numeric_limits<float>::infinity()), 0xff80);
  EXPECT_EQ(Bf16Ref(0.0f), 0);
  EXPECT_EQ(Bf16Ref(-0.0f), 0x8000);
}

}  // namespace
}  // namespace muster
