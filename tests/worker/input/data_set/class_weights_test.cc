#include "worker/input/data_set/class_weights.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

LabelSpec Weights(const std::vector<std::pair<std::string, double>>& weights) {
  LabelSpec labels;
  labels.weighted = true;
  for (const auto& [name, weight] : weights) {
    labels.class_weights.emplace_back();
    labels.class_weights.back().set_class_(name);
    labels.class_weights.back().set_weight(weight);
  }
  return labels;
}

float Weighed(const ClassWeights& weights, int32_t label, float weight) {
  EXPECT_THAT(weights.Weigh(label, &weight), IsOk());
  return weight;
}

TEST(ClassWeightsTest, ClassesGoByTheirNames) {
  const auto weights = ClassWeights::Create(
      Weights({{"rare", 5}, {"caf\\xE9", 0.5}}), {"caf\xE9", "often", "rare"},
      /*num_classes=*/3);
  ASSERT_THAT(weights, IsOk());
  EXPECT_EQ(Weighed(*weights, 2, 2), 10);
  EXPECT_EQ(Weighed(*weights, 1, 2), 2);
  EXPECT_EQ(Weighed(*weights, 0, 2), 1);
}

TEST(ClassWeightsTest, ClassesWithoutNamesGoByTheirNumbers) {
  const auto weights = ClassWeights::Create(Weights({{"1", 0}}), {}, 2);
  ASSERT_THAT(weights, IsOk());
  EXPECT_EQ(Weighed(*weights, 0, 3), 3);
  EXPECT_EQ(Weighed(*weights, 1, 3), 0);
}

TEST(ClassWeightsTest, WithoutWeightsEachClassWeighs1) {
  EXPECT_EQ(Weighed(ClassWeights(), 7, 0.25), 0.25);
}

TEST(ClassWeightsTest, AnUnknownClassIsRefusedWithTheNearest) {
  EXPECT_THAT(
      ClassWeights::Create(Weights({{"rara", 5}}), {"often", "rare"}, 2)
          .status(),
      StatusIs(kInvalid,
               AllOf(HasSubstr("class_weight"), HasSubstr("'rara'"),
                     HasSubstr("did you mean 'rare'"), HasSubstr("often"))));
  for (const char* const number : {"2", "-1", "one", "01"}) {
    EXPECT_THAT(
        ClassWeights::Create(Weights({{number, 5}}), {}, 2).status(),
        StatusIs(kInvalid, AllOf(HasSubstr(number), HasSubstr("0 to 1"))));
  }
}

// 1e-46 is 0 in float32.
TEST(ClassWeightsTest, ClassesThatAllWeighZero_AreRefused) {
  EXPECT_THAT(ClassWeights::Create(Weights({{"0", 0}, {"1", 1e-46}}), {}, 2),
              StatusIs(kInvalid, HasSubstr("every class weighs 0")));
  EXPECT_THAT(ClassWeights::Create(Weights({{"0", 0}}), {}, 2), IsOk());
}

TEST(ClassWeightsTest, AProductThatIsTooLargeIsABadRecord) {
  const auto weights = ClassWeights::Create(Weights({{"0", 1e15}}), {}, 2);
  ASSERT_THAT(weights, IsOk());
  float weight = 1e30f;
  EXPECT_THAT(weights->Weigh(0, &weight),
              StatusIs(kInvalid, HasSubstr("too large")));
}

}  // namespace
}  // namespace muster
