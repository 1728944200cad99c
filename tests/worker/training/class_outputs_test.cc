#include "worker/training/class_outputs.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Three classes.
class ThreeClasses : public DataSet {
 public:
  explicit ThreeClasses(std::vector<std::string> names = {})
      : names_(std::move(names)) {}

  int64_t num_examples() const override { return 0; }
  const Shape& example_shape() const override { return shape_; }
  int64_t num_classes() const override { return 3; }
  std::vector<std::string> ClassNames() const override { return names_; }
  absl::Status Read(int64_t /*index*/,
                    const ExampleMemory& /*into*/) const override {
    return absl::UnimplementedError("no rows");
  }

 private:
  const Shape shape_ = Shape({1});
  const std::vector<std::string> names_;
};

TrainingSpec TrainingOf(const std::string& model) {
  TrainingSpec training;
  *training.mutable_model() = ParseModel(model);
  training.mutable_model()->set_name("m");
  return training;
}

TEST(ClassOutputsTest, NamesTheFlagOfEachZooModel) {
  for (const char* model : {"mnist_cnn", "softmax_regression", "mlp",
                            "inception_small", "resnet20"}) {
    EXPECT_EQ(OutputsFlag(LoadZooModel(model), 3), "--set=model.logits.units=3")
        << model;
  }
}

TEST(ClassOutputsTest, FindsTheLayerThatMakesTheOutputs) {
  EXPECT_EQ(
      OutputsFlag(
          TrainingOf("input_shape: [4] "
                     "layer { name: 'a' type: 'dense' attr { name: 'units' i: "
                     "16 } } "
                     "layer { name: 'b' type: 'dense' attr { name: 'units' i: "
                     "7 } } "
                     "layer { name: 'c' type: 'softmax_cross_entropy' }"),
          3),
      "--set=model.b.units=3");
  EXPECT_EQ(
      OutputsFlag(
          TrainingOf("input_shape: [1, 4, 4] "
                     "layer { name: 'a' type: 'conv2d' attr { name: 'filters' "
                     "i: 7 } attr { name: 'kernel' i: 3 } } "
                     "layer { name: 'b' type: 'global_average_pool' } "
                     "layer { name: 'c' type: 'softmax_cross_entropy' }"),
          3),
      "--set=model.a.filters=3");
  EXPECT_EQ(OutputsFlag(
                TrainingOf("input_shape: [4] "
                           "layer { name: 'a' type: 'batch_norm' } "
                           "layer { name: 'c' type: 'softmax_cross_entropy' }"),
                3),
            "");
}

TEST(ClassOutputsTest, RefusesMoreOutputsThanNamedClassesOfANewRun) {
  const TrainingSpec training = LoadZooModel("resnet20");
  const ThreeClasses named({"cat", "dog", "elk"});
  EXPECT_THAT(CheckOutputs(training, named, 10, RunKind::kNew),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("3 classes (cat, dog, elk)"),
                             HasSubstr("'resnet20' has 10 outputs"),
                             HasSubstr("--set=model.logits.units=3"))));
  EXPECT_THAT(CheckOutputs(training, named, 3, RunKind::kNew), IsOk());
  EXPECT_THAT(CheckOutputs(training, named, 10, RunKind::kKnown), IsOk());
  EXPECT_THAT(CheckOutputs(training, ThreeClasses(), 10, RunKind::kNew),
              IsOk());
}

TEST(ClassOutputsTest, RefusesFewerOutputsThanClassesOfAnyRun) {
  const TrainingSpec training = LoadZooModel("mlp");
  for (const RunKind run : {RunKind::kNew, RunKind::kKnown}) {
    EXPECT_THAT(CheckOutputs(training, ThreeClasses(), 2, run),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("has 3 classes"),
                               HasSubstr("'mlp' has 2 outputs"),
                               HasSubstr("--set=model.logits.units=3"))));
  }
}

}  // namespace
}  // namespace muster
