#include "worker/task/shown_training.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using testing::ElementsAre;

// Example i is [i, the epoch].
class EpochDataSet : public DataSet {
 public:
  int64_t num_examples() const override { return 2; }
  const Shape& example_shape() const override { return shape_; }
  int64_t num_classes() const override { return 2; }
  absl::Status Read(int64_t index, const ExampleMemory& into) const override {
    return ReadInEpoch(index, -1, into);
  }
  absl::Status ReadInEpoch(int64_t index, int64_t epoch,
                           const ExampleMemory& into) const override {
    into.values[0] = static_cast<float>(index);
    into.values[1] = static_cast<float>(epoch);
    if (into.label != nullptr) *into.label = 0;
    return absl::OkStatus();
  }

 private:
  const Shape shape_ = Shape({1, 1, 2});
};

class ShownTrainingTest : public testing::Test {
 protected:
  ShownTrainingTest() {
    *training_.mutable_model() = ParseModel(R"pb(
      input_shape: [ 1, 1, 2 ]
      layer { name: "flatten" type: "flatten" }
      layer { name: "loss" type: "softmax_cross_entropy" }
    )pb");
    shown_.training = &training_;
    shown_.training_set = &data_set_;
    shown_.batch_size = 8;
    shown_.devices = {"cpu:0"};
    shown_.epoch_updates = 10;
  }

  std::vector<float> ExamplesAt(int64_t global_step) {
    SummaryParts parts;
    EXPECT_THAT(AddShownParts(shown_, &parts), IsOk());
    const auto values = parts.read_examples(global_step);
    EXPECT_THAT(values, IsOk());
    return values.value_or(std::vector<float>());
  }

  TrainingSpec training_;
  const EpochDataSet data_set_;
  ShownTraining shown_;
};

TEST_F(ShownTrainingTest, TheGraphIsThatOfTheModel) {
  SummaryParts parts;
  ASSERT_THAT(AddShownParts(shown_, &parts), IsOk());
  ASSERT_EQ(parts.graph.node_size(), 3);
  EXPECT_EQ(parts.graph.node(1).name(), "flatten");
  EXPECT_EQ(parts.example_shape, Shape({1, 1, 2}));
}

TEST_F(ShownTrainingTest, RunsAreToldApartByTheirSettings) {
  training_.mutable_optimizer()->set_name("sgd");
  training_.set_seed(7);
  shown_.replication = "sync";
  shown_.num_workers = 3;
  shown_.overrides = {"model.dense1.units=32", "input.dir=a=b", "seed=7"};
  SummaryParts parts;
  ASSERT_THAT(AddShownParts(shown_, &parts), IsOk());
  const auto& hparams = parts.hparams.hparams();
  EXPECT_EQ(hparams.at("optimizer").string_value(), "sgd");
  EXPECT_EQ(hparams.at("replication").string_value(), "sync");
  EXPECT_EQ(hparams.at("batch_size").number_value(), 8);
  EXPECT_EQ(hparams.at("cluster.worker").number_value(), 3);
  EXPECT_EQ(hparams.at("seed").number_value(), 7);
  EXPECT_EQ(hparams.at("learning_rate").number_value(), 0.01);
  EXPECT_EQ(hparams.at("model.dense1.units").number_value(), 32);
  EXPECT_EQ(hparams.at("input.dir").string_value(), "a=b");
}

TEST_F(ShownTrainingTest, ExamplesAreThoseOfTheStepsEpoch) {
  training_.mutable_summary()->set_images(1);
  EXPECT_THAT(ExamplesAt(0), ElementsAre(0, 0));
  EXPECT_THAT(ExamplesAt(10), ElementsAre(0, 0));
  EXPECT_THAT(ExamplesAt(11), ElementsAre(0, 1));
}

TEST_F(ShownTrainingTest, ShowsNoMoreThanThereAre) {
  training_.mutable_summary()->set_images(3);
  EXPECT_THAT(ExamplesAt(1), ElementsAre(0, 0, 1, 0));
}

}  // namespace
}  // namespace muster
