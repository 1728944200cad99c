#include "worker/training/training_changes.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TrainingSpec Parse(const std::string& text) {
  TrainingSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

constexpr char kTraining[] = R"pb(
  model {
    layer {
      name: "conv1"
      type: "conv2d"
      attr { name: "filters" i: 8 }
    }
    layer { name: "act" type: "relu" }
  }
  input {
    type: "csv"
    batch_size: 32
    map { type: "scale" }
  }
  optimizer {
    name: "adam"
    attr { name: "learning_rate" f: 0.001 }
  }
  replication { async {} }
)pb";

std::vector<std::string> Changes(void (*change)(TrainingSpec*)) {
  TrainingSpec now = Parse(kTraining);
  change(&now);
  return DescribeTrainingChanges(Parse(kTraining), now);
}

TEST(TrainingChangesTest, NamesEachFieldAsSetDoes) {
  EXPECT_THAT(
      Changes([](TrainingSpec* now) {
        now->mutable_optimizer()->mutable_attr(0)->set_f(0.1);
        now->mutable_input()->set_batch_size(64);
        now->mutable_model()->mutable_layer(0)->mutable_attr(0)->set_i(16);
      }),
      UnorderedElementsAre("optimizer.adam.learning_rate: 0.001 -> 0.1",
                           "input.batch_size: 32 -> 64",
                           "model.conv1.filters: 8 -> 16"));
}

TEST(TrainingChangesTest, WhatIsNotSetHasNoValue) {
  EXPECT_THAT(
      Changes([](TrainingSpec* now) {
        now->mutable_optimizer()->clear_attr();
        now->set_seed(9);
      }),
      UnorderedElementsAre("optimizer.adam.learning_rate: 0.001 -> not set",
                           "seed: not set -> 9"));
}

TEST(TrainingChangesTest, NamesAnotherChoiceAndAnotherOrder) {
  EXPECT_THAT(Changes([](TrainingSpec* now) {
                now->mutable_replication()->mutable_sync();
              }),
              ElementsAre("replication.async: {} -> not set",
                          "replication.sync: not set -> {}"));
  EXPECT_THAT(Changes([](TrainingSpec* now) {
                now->mutable_model()->mutable_layer()->SwapElements(0, 1);
              }),
              ElementsAre("model.layer: conv1, act -> act, conv1"));
  EXPECT_THAT(Changes([](TrainingSpec* now) {
                now->mutable_input()->mutable_map(0)->set_type("crop");
              }),
              ElementsAre("input.map[0].type: \"scale\" -> \"crop\""));
}

TEST(TrainingChangesTest, WhatAStepDoesNotDependOnIsPassedOver) {
  EXPECT_THAT(Changes([](TrainingSpec* now) {
                now->mutable_stop()->set_steps(9);
                now->mutable_input()->set_dir("elsewhere");
                now->mutable_input()->set_threads(3);
                now->mutable_evaluation()->set_every_steps(7);
                now->mutable_summary()->set_every_steps(7);
                now->mutable_checkpoint()->set_every_steps(7);
                now->mutable_placement()->set_strategy("greedy");
              }),
              IsEmpty());
}

TEST(TrainingChangesTest, AreBounded) {
  const auto lines = Changes([](TrainingSpec* now) {
    for (int i = 0; i < 1000; ++i) {
      LayerSpec* const layer = now->mutable_model()->add_layer();
      layer->set_name("layer" + std::to_string(i));
      layer->set_type(std::string(10000, 'a'));
    }
  });
  EXPECT_LT(lines.size(), 60);
  for (const std::string& line : lines) EXPECT_LT(line.size(), 400);
}

}  // namespace
}  // namespace muster
