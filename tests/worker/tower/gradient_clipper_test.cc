#include "worker/tower/gradient_clipper.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/tower/clip_golden.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// PyTorch divides by |g| + 1e-6 instead of |g|, which is above 5 where it is
// clipped. Rounding to float adds 6e-8.
constexpr double kTorchTolerance = 1e-6 / 5 + 6e-8;
// The rounding of a norm whose elements were each rounded to float once.
constexpr double kFloatTolerance = 1e-7;

ClippingSpec Spec(const std::string& text) {
  ClippingSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

// Tensors of some sizes, which clipping changes in place.
class Gradients {
 public:
  explicit Gradients(std::vector<std::vector<float>> tensors)
      : tensors_(std::move(tensors)) {
    for (std::vector<float>& tensor : tensors_) {
      spans_.push_back(absl::MakeSpan(tensor));
    }
  }

  void Clip(const std::string& spec) {
    const auto clipper = GradientClipper::Create(Spec(spec));
    ASSERT_THAT(clipper, IsOk());
    clipper->Clip(spans_);
  }

  const std::vector<std::vector<float>>& tensors() const { return tensors_; }
  std::vector<float> flat() const {
    std::vector<float> all;
    for (const auto& tensor : tensors_) {
      all.insert(all.end(), tensor.begin(), tensor.end());
    }
    return all;
  }
  double norm() const {
    double sum = 0;
    for (const float x : flat()) sum += static_cast<double>(x) * x;
    return std::sqrt(sum);
  }

 private:
  std::vector<std::vector<float>> tensors_;
  std::vector<absl::Span<float>> spans_;
};

Gradients GoldenStart() {
  std::vector<std::vector<float>> tensors;
  const double* next = kClipGradient;
  for (const int size : kClipSizes) {
    tensors.emplace_back(next, next + size);
    next += size;
  }
  return Gradients(tensors);
}

TEST(GradientClipperTest, AgreesWithPyTorch) {
  for (const ClipGolden& golden : kClipGoldens) {
    Gradients gradients = GoldenStart();
    gradients.Clip(golden.spec);
    const std::vector<float> clipped = gradients.flat();
    for (size_t i = 0; i < clipped.size(); ++i) {
      EXPECT_NEAR(clipped[i], golden.gradient[i],
                  kTorchTolerance * std::abs(golden.gradient[i]))
          << golden.spec << " element " << i;
    }
  }
}

TEST(GradientClipperTest, KeepsTheBitsOfAGradientWithinTheLimit) {
  const std::vector<float> before = GoldenStart().flat();
  // Its largest element and tensor norm are 12, its global norm is 13.1.
  for (const char* const spec : {"", "by_value: 12", "by_norm: 12",
                                 "by_global_norm: 14", "by_norm: 3e38"}) {
    Gradients gradients = GoldenStart();
    gradients.Clip(spec);
    const std::vector<float> after = gradients.flat();
    EXPECT_EQ(
        std::memcmp(before.data(), after.data(), after.size() * sizeof(float)),
        0)
        << spec;
  }
}

// Longer than the runs that are made vectors of, and not a multiple of them.
TEST(GradientClipperTest, ClipsEveryElementOfLongTensors) {
  constexpr double kLimit = 2;
  for (const size_t size : {1, 15, 16, 17, 1000003}) {
    Gradients values({std::vector<float>(size, -3.0f)});
    values.Clip("by_value: 2");
    for (const float x : values.flat()) ASSERT_EQ(x, -2.0f);
    for (const char* const spec : {"by_norm: 2", "by_global_norm: 2"}) {
      Gradients norms({std::vector<float>(size, -3.0f)});
      norms.Clip(spec);
      EXPECT_NEAR(norms.norm(), kLimit, kLimit * kFloatTolerance) << size;
    }
  }
}

TEST(GradientClipperTest, OneNormIsOfEachTensorTheOtherOfAll) {
  Gradients each({{3, 4}, {0.3f, 0.4f}, {}});
  each.Clip("by_norm: 1");
  EXPECT_FLOAT_EQ(each.tensors()[0][1], 0.8f);
  EXPECT_EQ(each.tensors()[1][1], 0.4f);
  Gradients all({{3, 4}, {0.3f, 0.4f}, {}});
  all.Clip("by_global_norm: 1");
  EXPECT_NEAR(all.norm(), 1, kFloatTolerance);
  EXPECT_FLOAT_EQ(all.tensors()[0][1] / all.tensors()[1][1], 10.0f);
}

TEST(GradientClipperTest, NormsNeitherOverflowNorVanish) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  Gradients large({{kLargest, kLargest}});
  large.Clip("by_global_norm: 1");
  EXPECT_FLOAT_EQ(large.tensors()[0][0], std::sqrt(0.5f));
  Gradients small({{1e-30f, -1e-30f}});
  small.Clip("by_global_norm: 1e-32");
  EXPECT_NEAR(small.norm(), 1e-32, 1e-32 * kFloatTolerance);
}

TEST(GradientClipperTest, NaNStaysNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* const spec :
       {"by_value: 1", "by_norm: 1", "by_global_norm: 1"}) {
    Gradients gradients({{nan, 5}});
    gradients.Clip(spec);
    EXPECT_TRUE(std::isnan(gradients.tensors()[0][0])) << spec;
  }
}

TEST(GradientClipperTest, RefusesLimitsByName) {
  for (const char* const field : {"by_value", "by_norm", "by_global_norm"}) {
    for (const char* const value : {"0", "-1", "nan", "inf", "1e39", "1e-46"}) {
      EXPECT_THAT(
          GradientClipper::Create(Spec(std::string(field) + ": " + value)),
          StatusIs(absl::StatusCode::kInvalidArgument,
                   AllOf(HasSubstr("gradient.clip." + std::string(field)),
                         HasSubstr("above 0 and finite"))))
          << field << value;
    }
  }
}

TEST(GradientClipperTest, SaysWhetherItClips) {
  EXPECT_FALSE(GradientClipper::Create(Spec(""))->clips());
  EXPECT_TRUE(GradientClipper::Create(Spec("by_norm: 1"))->clips());
}

}  // namespace
}  // namespace muster
