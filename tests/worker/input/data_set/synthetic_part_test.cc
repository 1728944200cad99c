#include <algorithm>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/input/data_set/create_data_set.h"

namespace muster {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kSeed = 7;

absl::StatusOr<std::unique_ptr<DataSet>> Open(InputSpec spec,
                                              const Shape& shape,
                                              Split split = Split::kTrain,
                                              uint64_t seed = kSeed) {
  spec.set_type("synthetic");
  return CreateDataSet(spec, shape, seed, split);
}

std::unique_ptr<DataSet> Make(const Shape& shape, Split split,
                              uint64_t seed = kSeed) {
  auto data_set = Open({}, shape, split, seed);
  EXPECT_THAT(data_set, IsOk());
  return *std::move(data_set);
}

struct Example {
  std::vector<float> values;
  int32_t label;
};

Example ReadExample(const DataSet& data_set, int64_t index) {
  Example example;
  example.values.resize(data_set.example_shape().num_elements());
  EXPECT_THAT(data_set.Read(index, {example.values.data(), &example.label}),
              IsOk());
  return example;
}

TEST(SyntheticPartTest, HasDefaults) {
  const auto train = Make(Shape({3}), Split::kTrain);
  EXPECT_EQ(train->num_examples(), 10000);
  EXPECT_EQ(train->num_classes(), 10);
  EXPECT_EQ(Make(Shape({3}), Split::kTest)->num_examples(), 1000);
}

// The values are part of the format: a run must be the same on every machine.
TEST(SyntheticPartTest, GivesTheseBits) {
  const Example example =
      ReadExample(*Make(Shape({1, 2, 2}), Split::kTrain), 3);
  EXPECT_EQ(example.label, 5);
  EXPECT_THAT(example.values,
              ElementsAre(0.6100120544433594f, 0.11429977416992188f,
                          0.6349067687988281f, 0.6257247924804688f));
}

TEST(SyntheticPartTest, StaysInUnitRange) {
  const auto data_set = Make(Shape({5, 7}), Split::kTrain);
  for (int64_t i = 0; i < 200; ++i) {
    const Example example = ReadExample(*data_set, i);
    EXPECT_THAT(example.values,
                Each(testing::AllOf(testing::Ge(0.0f), testing::Lt(1.0f))));
    EXPECT_GE(example.label, 0);
    EXPECT_LT(example.label, data_set->num_classes());
  }
}

TEST(SyntheticPartTest, DependsOnSeedAndSplit) {
  const Shape shape({8});
  const Example example = ReadExample(*Make(shape, Split::kTrain), 0);
  EXPECT_EQ(ReadExample(*Make(shape, Split::kTrain), 0).values, example.values);
  EXPECT_NE(ReadExample(*Make(shape, Split::kTest), 0).values, example.values);
  EXPECT_NE(ReadExample(*Make(shape, Split::kTrain, kSeed + 1), 0).values,
            example.values);
}

float SquaredDistance(const std::vector<float>& a,
                      const std::vector<float>& b) {
  float sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// A linear model can learn it: the nearest class mean of the training set
// names the class of test examples.
TEST(SyntheticPartTest, ClassMeansOfTrainingClassifyTheTestSet) {
  const Shape shape({64});
  const auto train = Make(shape, Split::kTrain);
  std::vector<std::vector<float>> means(10, std::vector<float>(64));
  std::vector<float> counts(10);
  for (int64_t i = 0; i < 1000; ++i) {
    const Example example = ReadExample(*train, i);
    for (int j = 0; j < 64; ++j) means[example.label][j] += example.values[j];
    ++counts[example.label];
  }
  for (int k = 0; k < 10; ++k) {
    for (float& value : means[k]) value /= counts[k];
  }
  const auto test = Make(shape, Split::kTest);
  for (int64_t i = 0; i < 200; ++i) {
    const Example example = ReadExample(*test, i);
    const auto nearest = std::min_element(
        means.begin(), means.end(), [&example](const auto& a, const auto& b) {
          return SquaredDistance(a, example.values) <
                 SquaredDistance(b, example.values);
        });
    EXPECT_EQ(nearest - means.begin(), example.label) << "example " << i;
  }
}

TEST(SyntheticPartTest, RefusesNegativeNumbers) {
  InputSpec spec;
  spec.set_synthetic_classes(-1);
  EXPECT_THAT(Open(spec, Shape({3})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input.synthetic_classes")));
}

TEST(SyntheticPartTest, RefusesHugePrototypes) {
  InputSpec spec;
  spec.set_synthetic_classes(std::numeric_limits<int64_t>::max());
  EXPECT_THAT(Open(spec, Shape({3})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
