#include "worker/saved/ensemble_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/config/json.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/saved/saved_training.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Rounding of a mean of a few float32.
constexpr double kRounding = 1e-6;

class EnsembleEvaluationTest : public SavedTraining {
 protected:
  void SetUp() override {
    SavedTraining::SetUp();
    WriteClasses();
  }

  std::unique_ptr<Ensemble> Loaded(const std::vector<EnsembleMember>& members) {
    Ensemble::Options options;
    options.members = members;
    options.device_choice.device = "ref";
    options.is_labelled = true;
    options.reporter = reporter();
    auto ensemble = Ensemble::Create(options);
    EXPECT_THAT(ensemble, IsOk());
    EXPECT_THAT((*ensemble)->Load(), IsOk());
    return *std::move(ensemble);
  }
};

// Its mean loss and accuracy, from its outputs.
void ExpectFiguresOfOutputs(const std::vector<EnsembleMember>& members,
                            Ensemble* ensemble, const EvaluationResult& found) {
  double loss = 0, correct = 0;
  int64_t rows = 0;
  while (*ensemble->Next()) {
    for (size_t i = 0; i < ensemble->indices().size(); ++i, ++rows) {
      const auto row = ensemble->outputs().subspan(2 * i, 2);
      const int label = ensemble->batch(0).labels()[i];
      const double other = double{row[1 - label]} - row[label];
      loss += std::log1p(std::exp(other));
      correct += other < 0;
    }
  }
  EXPECT_EQ(rows, found.examples) << members.size();
  EXPECT_NEAR(found.loss, loss / rows, kRounding);
  EXPECT_EQ(found.metrics.Find("accuracy"), correct / rows);
}

TEST_F(EnsembleEvaluationTest, HasTheFiguresOfEachTheirMeanAndTheEnsembles) {
  const std::vector<EnsembleMember> members = {
      Trained("a", kClassifier, {"stop.steps=3"}),
      Trained("b", kClassifier, {"seed=2", "stop.steps=9"}),
      Trained("c", kClassifier, {"seed=3"})};
  const auto found = EvaluateEnsemble(Loaded(members).get());
  ASSERT_THAT(found, IsOk());
  ASSERT_EQ(found->members.size(), 3);
  double loss = 0, accuracy = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const EnsembleResult::Member& one = found->members[i];
    EXPECT_EQ(one.name, members[i].name);
    EXPECT_THAT(one.parameters, HasSubstr(members[i].train_dir + "/ckpt-"));
    // Found by its own training at its end.
    const auto result = ReadResult(members[i].train_dir);
    ASSERT_THAT(result, IsOk());
    EXPECT_NEAR(one.figures.loss, std::stod(result->Find("test_loss")->text),
                kRounding);
    loss += one.figures.loss;
    accuracy += *one.figures.metrics.Find("accuracy");
  }
  EXPECT_NEAR(found->mean.loss, loss / 3, kRounding);
  EXPECT_NEAR(*found->mean.metrics.Find("accuracy"), accuracy / 3, kRounding);
  ExpectFiguresOfOutputs(members, Loaded(members).get(), found->ensemble);
  // The mean of convex losses is no less than the loss of the mean.
  EXPECT_LT(found->ensemble.loss, found->mean.loss);
}

TEST_F(EnsembleEvaluationTest, OneMemberIsTheEnsemble) {
  const auto found =
      EvaluateEnsemble(Loaded({Trained("a", kClassifier)}).get());
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->ensemble.loss, found->members[0].figures.loss);
  EXPECT_EQ(found->mean.loss, found->ensemble.loss);
  EXPECT_EQ(found->ensemble.metrics.Find("accuracy"),
            found->members[0].figures.metrics.Find("accuracy"));
}

TEST_F(EnsembleEvaluationTest, NumbersAreComparedWithTargets) {
  for (const char* name : {"train.csv", "test.csv"}) {
    Write(name, "x,y,label\n1,1,1.5\n0,3,-2.5\n3,0,6.5\n2,2,2.5\n");
  }
  const auto found = EvaluateEnsemble(
      Loaded({Trained("a", kRegression, {"stop.steps=5"}),
              Trained("b", kRegression, {"stop.steps=15", "seed=2"})})
          .get());
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->ensemble.examples, 4);
  EXPECT_TRUE(found->ensemble.metrics.Find("mean_absolute_error").has_value());
  EXPECT_LT(found->ensemble.loss, found->mean.loss);
}

TEST_F(EnsembleEvaluationTest, IsWrittenAsJsonAndAsATable) {
  EvaluationResult a{8, 0.5, {{{"accuracy", 0.75}}, {}}};
  EvaluationResult b{8, 0.25, {{{"accuracy", 0.875}}, {}}};
  EnsembleResult result;
  result.members = {{"runs/a", "mlp", "runs/a/ckpt-5", "cpu:0", a},
                    {"runs/b", "cnn", "runs/b/ckpt-9", "cpu:1", b}};
  result.mean = a;
  result.ensemble = b;
  EXPECT_EQ(EnsembleTable(result),
            "| member | test_accuracy | test_loss |\n| --- | --- | --- |\n"
            "| runs/a | 0.7500 | 0.5000 |\n| runs/b | 0.8750 | 0.2500 |\n"
            "| mean | 0.7500 | 0.5000 |\n| ensemble | 0.8750 | 0.2500 |\n");
  const auto json = ParseJson(EnsembleJson(result));
  ASSERT_THAT(json, IsOk());
  const JsonValue& second = json->Find("members")->items[1];
  EXPECT_EQ(second.Find("name")->text, "runs/b");
  EXPECT_EQ(second.Find("model")->text, "cnn");
  EXPECT_EQ(second.Find("parameters")->text, "runs/b/ckpt-9");
  EXPECT_EQ(second.Find("device")->text, "cpu:1");
  EXPECT_EQ(second.Find("test_accuracy")->text, "0.875");
  EXPECT_EQ(json->Find("mean")->Find("test_loss")->text, "0.5");
  EXPECT_EQ(json->Find("ensemble")->Find("test_examples")->text, "8");
}

TEST_F(EnsembleEvaluationTest, LeavesBadRowsOutAndCountsThem) {
  EnsembleMember member = Trained("a", kClassifier);
  member.training.mutable_input()->set_on_bad_record(SKIP);
  Write("test.csv", "x,y,label\n5,0,left\nbad,0,left\n0,5,right\n");
  const auto found = EvaluateEnsemble(Loaded({member}).get());
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->ensemble.examples, 2);
  EXPECT_THAT(Lines(), Contains(HasSubstr("1 of 3 rows are bad")));
}

}  // namespace
}  // namespace muster
