// The codecs of two bytes a value, on every instruction set of this machine,
// against their reference twins.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/half_codecs_ref.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"

namespace muster {
namespace {

constexpr uint32_t kSeed = 20;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A codec's twin.
struct Reference {
  const char* codec;
  uint16_t (*encode)(float);
  float (*decode)(uint16_t);
  // Below it the values are evenly spaced.
  double least_normal;
};

std::ostream& operator<<(std::ostream& out, const Reference& reference) {
  return out << reference.codec;
}

constexpr Reference kReferences[] = {
    {"bf16", &Bf16Ref, &FloatOfBf16Ref, 0x1p-126},
    {"fp16", &Fp16Ref, &FloatOfFp16Ref, 0x1p-14},
};

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Every float's upper half with lower halves around a tie, and random ones.
std::vector<float> EveryUpperHalf() {
  std::vector<float> values;
  std::mt19937 random(kSeed);
  for (uint32_t upper = 0; upper < 0x10000u; ++upper) {
    for (const uint32_t lower : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu,
                                 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(FloatOf(upper << 16 | lower));
    }
    values.push_back(FloatOf(upper << 16 | (random() & 0xffffu)));
  }
  return values;
}

// Every finite value of the codec, and the middles between two, with their
// neighbours.
std::vector<float> EveryMiddle(const Reference& reference) {
  std::vector<float> values;
  const uint16_t end = reference.encode(kInfinity);
  for (uint16_t half = 0; half < end; ++half) {
    const double value = reference.decode(half);
    // Above the largest one, as if there were another.
    const double next = half + 1 < end ? reference.decode(half + 1)
                                       : 2 * value - reference.decode(half - 1);
    for (const double near : {value, value + (next - value) / 2}) {
      const auto exact = static_cast<float>(near);
      for (const float one : {std::nextafter(exact, 0.0f), exact,
                              std::nextafter(exact, kInfinity)}) {
        values.push_back(one);
        values.push_back(-one);
      }
    }
  }
  return values;
}

class HalfCodecsTest
    : public ::testing::TestWithParam<std::tuple<Reference, int64_t>> {
 protected:
  void SetUp() override { UseTargets(std::get<1>(GetParam())); }
  ~HalfCodecsTest() override { UseTargets(0); }

  static void UseTargets(int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  std::vector<float> InterestingValues() const {
    std::vector<float> values = EveryUpperHalf();
    const std::vector<float> more = EveryMiddle(reference_);
    values.insert(values.end(), more.begin(), more.end());
    return values;
  }

  std::vector<uint16_t> Encoded(const std::vector<float>& values) const {
    std::vector<uint16_t> encoded(values.size());
    codec_.Encode(values.data(), static_cast<int64_t>(values.size()),
                  reinterpret_cast<char*>(encoded.data()));
    return encoded;
  }

  const Reference reference_ = std::get<0>(GetParam());
  const Codec& codec_ = *FindCodec(reference_.codec).value();
};

TEST_P(HalfCodecsTest, EncodesAsTheReference) {
  const std::vector<float> values = InterestingValues();
  std::vector<uint16_t> wanted;
  for (const float value : values) wanted.push_back(reference_.encode(value));
  EXPECT_TRUE(Encoded(values) == wanted);
}

TEST_P(HalfCodecsTest, DecodesAsTheReference) {
  std::vector<uint16_t> encoded;
  for (uint32_t i = 0; i < 0x10000u; ++i) {
    encoded.push_back(static_cast<uint16_t>(i));
  }
  std::vector<float> decoded(encoded.size());
  codec_.Decode(reinterpret_cast<const char*>(encoded.data()),
                static_cast<int64_t>(encoded.size()), decoded.data());
  for (size_t i = 0; i < encoded.size(); ++i) {
    const float wanted = reference_.decode(encoded[i]);
    ASSERT_EQ(std::memcmp(&decoded[i], &wanted, sizeof(wanted)), 0) << i;
  }
}

TEST_P(HalfCodecsTest, FindsEveryNonFiniteValueAnywhere) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    // One byte off any alignment, in and behind the vectors.
    std::vector<char> encoded(2 * 161 + 1, '\x3c');
    const int64_t at = bits % 161;
    std::memcpy(encoded.data() + 1 + 2 * at, &half, sizeof(half));
    const int64_t wanted = std::isfinite(reference_.decode(half)) ? -1 : at;
    ASSERT_EQ(codec_.FirstNonFinite(encoded.data() + 1, 161), wanted) << bits;
  }
  EXPECT_EQ(codec_.FirstNonFinite(nullptr, 0), -1);
}

TEST_P(HalfCodecsTest, AnyLengthAndAnyAddress) {
  const std::vector<float> all = EveryUpperHalf();
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
      const float wanted = reference_.decode(reference_.encode(values[i]));
      ASSERT_EQ(std::memcmp(&decoded[i], &wanted, sizeof(wanted)), 0);
    }
  }
}

TEST_P(HalfCodecsTest, KeepsItsBoundOnTheError) {
  const std::vector<float> values = InterestingValues();
  const std::vector<uint16_t> encoded = Encoded(values);
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const double decoded = reference_.decode(encoded[i]);
    const double error = std::abs(decoded - value);
    if (std::abs(value) < reference_.least_normal) {
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
    CodecsAndTargets, HalfCodecsTest,
    ::testing::Combine(
        ::testing::ValuesIn(kReferences),
        ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets())),
    [](const auto& info) {
      return std::string(std::get<0>(info.param).codec) + "_" +
             hwy::TargetName(std::get<1>(info.param));
    });

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
