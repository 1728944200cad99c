#include "worker/saved/ensemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/saved/saved_training.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rounding of a float32 probability, and of the logarithm and back.
constexpr double kRounding = 1e-6;
constexpr char kNormalize[] =
    "input.map={type: 'normalize' attr {name: 'mean' s: '2'} attr {name: 'std' "
    "s: '4'}}";

class EnsembleTest : public SavedTraining {
 protected:
  void SetUp() override {
    SavedTraining::SetUp();
    WriteClasses();
  }

  // Three that differ by seed, steps, model and what they make of a row.
  std::vector<EnsembleMember> TrainThree() {
    return {Trained("a", kClassifier),
            Trained("b", Hidden(), {"seed=2", "stop.steps=20"}),
            Trained("c", kClassifier, {"seed=3", kNormalize})};
  }
  static std::string Hidden() {
    return absl::StrReplaceAll(
        kClassifier,
        {{"layer {\n      name: \"output\"",
          "layer { name: 'hidden' type: 'dense' attr { name: 'units' i: 5 } "
          "attr { name: 'activation' s: 'tanh' } }\n    layer {\n"
          "      name: \"output\""}});
  }

  Ensemble::Options OptionsOf(std::vector<EnsembleMember> members,
                              std::vector<std::string> devices = {}) {
    Ensemble::Options options;
    options.members = std::move(members);
    options.device_choice.devices = std::move(devices);
    if (options.device_choice.devices.empty()) {
      options.device_choice.device = "ref";
    }
    options.is_labelled = true;
    options.reporter = reporter();
    return options;
  }

  // All rows' outputs.
  absl::StatusOr<std::vector<float>> Outputs(const Ensemble::Options& options) {
    ASSIGN_OR_RETURN(const auto ensemble, Ensemble::Create(options));
    RETURN_IF_ERROR(ensemble->Load());
    std::vector<float> all;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, ensemble->Next());
      if (!more) return all;
      all.insert(all.end(), ensemble->outputs().begin(),
                 ensemble->outputs().end());
    }
  }
};

// The outputs for the first of two classes, by row.
std::vector<double> FirstOfTwo(const std::vector<float>& outputs) {
  std::vector<double> found;
  for (size_t i = 0; i < outputs.size(); i += 2) {
    found.push_back(1 / (1 + std::exp(double{outputs[i + 1]} - outputs[i])));
  }
  return found;
}

TEST_F(EnsembleTest, AnswersWithTheMeanOfTheMembersProbabilities) {
  const std::vector<EnsembleMember> members = TrainThree();
  const auto together = Outputs(OptionsOf(members));
  ASSERT_THAT(together, IsOk());
  const std::vector<double> found = FirstOfTwo(*together);
  ASSERT_EQ(found.size(), 8);
  std::vector<std::vector<double>> alone;
  for (const EnsembleMember& member : members) {
    const auto outputs = Outputs(OptionsOf({member}));
    ASSERT_THAT(outputs, IsOk());
    alone.push_back(FirstOfTwo(*outputs));
  }
  for (int i = 0; i < 8; ++i) {
    const double mean = (alone[0][i] + alone[1][i] + alone[2][i]) / 3;
    EXPECT_NEAR(found[i], mean, kRounding) << i;
    // They are not alike.
    EXPECT_GT(std::abs(alone[0][i] - alone[1][i]), 100 * kRounding) << i;
  }
}

TEST_F(EnsembleTest, OneMemberIsItsModelBitForBit) {
  const EnsembleMember member = Trained("a", kClassifier);
  const auto found = Outputs(OptionsOf({member}));
  ASSERT_THAT(found, IsOk());
  const auto ensemble = Ensemble::Create(OptionsOf({member}));
  ASSERT_THAT(ensemble, IsOk());
  ASSERT_THAT((*ensemble)->Load(), IsOk());
  std::vector<float> wanted;
  while (*(*ensemble)->Next()) {
    const auto outputs = (*ensemble)->model(0).outputs();
    wanted.insert(wanted.end(), outputs.begin(), outputs.end());
  }
  EXPECT_EQ(*found, wanted);
}

TEST_F(EnsembleTest, DevicesChangeNoBit) {
  const std::vector<EnsembleMember> members = TrainThree();
  const auto wanted = Outputs(OptionsOf(members));
  ASSERT_THAT(wanted, IsOk());
  for (const std::vector<std::string>& devices :
       {std::vector<std::string>{"ref:0", "ref:1"},
        {"ref:2", "ref:1", "ref:0"},
        {"ref:0", "ref:1", "ref:2", "ref:3", "ref:4"}}) {
    const auto found = Outputs(OptionsOf(members, devices));
    ASSERT_THAT(found, IsOk());
    EXPECT_EQ(*found, *wanted) << devices.size();
  }
}

TEST_F(EnsembleTest, MembersAreDealtToTheDevicesRoundAndRound) {
  const auto ensemble =
      Ensemble::Create(OptionsOf(TrainThree(), {"ref:4", "ref:2"}));
  ASSERT_THAT(ensemble, IsOk());
  const std::vector<std::string> found = {
      (*ensemble)->device(0), (*ensemble)->device(1), (*ensemble)->device(2)};
  EXPECT_THAT(found, ElementsAre("ref:4", "ref:2", "ref:4"));
}

TEST_F(EnsembleTest, RowsAreSharedByThoseThatReadThemAlike) {
  const auto ensemble = Ensemble::Create(OptionsOf(TrainThree()));
  ASSERT_THAT(ensemble, IsOk());
  EXPECT_EQ(&(*ensemble)->batch(0), &(*ensemble)->batch(1));
  EXPECT_NE(&(*ensemble)->batch(0), &(*ensemble)->batch(2));
  ASSERT_THAT((*ensemble)->Load(), IsOk());
  ASSERT_THAT((*ensemble)->Next(), IsOk());
  EXPECT_EQ((*ensemble)->batch(0).input()[0], 5);
  EXPECT_EQ((*ensemble)->batch(2).input()[0], 0.75);
}

TEST_F(EnsembleTest, OtherOutputsAreRefusedWithBothMembers) {
  const EnsembleMember a = Trained("a", kClassifier);
  EnsembleMember b = Trained("b", kClassifier,
                             {"model.layer={name: 'output' type: 'dense' attr "
                              "{name: 'units' i: 3}}, {name: 'loss' type: "
                              "'softmax_cross_entropy'}"});
  EXPECT_THAT(
      Ensemble::Create(OptionsOf({a, b})),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr("'a' with 2 outputs, probabilities of one class"),
                HasSubstr("'b' with 3 outputs"))));
  b.training = Model(kRegression).training;
  EXPECT_THAT(Ensemble::Create(OptionsOf({a, b})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'b' with 1 outputs, numbers")));
}

TEST_F(EnsembleTest, AMemberWithoutACheckpointIsNamed) {
  EnsembleMember b = Trained("b", kClassifier);
  b.train_dir = NewTrainDir("empty");
  const auto ensemble =
      Ensemble::Create(OptionsOf({Trained("a", kClassifier), b}));
  ASSERT_THAT(ensemble, IsOk());
  EXPECT_THAT((*ensemble)->Load(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("member 'b': ")));
}

TEST_F(EnsembleTest, ARowThatIsBadForAllIsLeftOut) {
  std::vector<EnsembleMember> members = TrainThree();
  Write("test.csv", "x,y,label\n5,0,left\nbad,5,right\n4,1,left\n");
  for (EnsembleMember& member : members) {
    member.training.mutable_input()->set_on_bad_record(SKIP);
  }
  const auto ensemble = Ensemble::Create(OptionsOf(members));
  ASSERT_THAT(ensemble, IsOk());
  ASSERT_THAT((*ensemble)->Load(), IsOk());
  ASSERT_THAT((*ensemble)->Next(), IsOk());
  EXPECT_THAT((*ensemble)->indices(), ElementsAre(0, 2));
  EXPECT_EQ((*ensemble)->end(), 3);
  EXPECT_EQ((*ensemble)->rows().bad(), 1);
}

}  // namespace
}  // namespace muster
