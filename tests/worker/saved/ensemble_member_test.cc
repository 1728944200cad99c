#include "worker/saved/ensemble_member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/saved/saved_training.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class EnsembleMemberTest : public SavedTraining {
 protected:
  // A member that was not trained.
  EnsembleMember Member(const std::string& name,
                        const std::vector<std::string>& more = {}) {
    EnsembleMember member;
    member.name = name;
    member.train_dir = NewTrainDir(name);
    member.training = Model(kClassifier, more).training;
    return member;
  }

  void Keep(const std::string& folder, const std::string& training) {
    std::ofstream(folder + "/kept_training.textproto")
        << training << "input { type: 'csv' dir: 'd' batch_size: 1 }";
  }
};

TEST_F(EnsembleMemberTest, EachHasTheTrainingThatItsFolderKeeps) {
  const std::string a = NewTrainDir("a"), b = NewTrainDir("b");
  Keep(a, kClassifier);
  Keep(b, kRegression);
  const std::string file = b + "/weights.safetensors";
  const auto members = ReadMembers({a, file}, "", {"seed=5"});
  ASSERT_THAT(members, IsOk());
  EXPECT_EQ((*members)[0].train_dir, a);
  EXPECT_EQ((*members)[0].training.model().name(), "softmax_regression");
  EXPECT_EQ((*members)[1].init.path, file);
  EXPECT_EQ((*members)[1].training.model().name(), "linear_regression");
  EXPECT_EQ((*members)[1].training.seed(), 5);
}

// With every override and default, and as it was before it was fitted.
TEST_F(EnsembleMemberTest, ATrainingKeepsItselfInItsFolder) {
  WriteClasses();
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"stop.steps=3", "seed=4"},
        {"stop.steps=3", "replication.sync.min_replicas=1",
         "optimizer.momentum.learning_rate=0.1",
         "optimizer.schedule.name=cosine", "optimizer.schedule.alpha=0.1"},
        {"stop.epochs=1", "evaluation.every_steps=2", "input.threads=2",
         "model.output.l2=0.1", "input.shuffle=false"}}) {
    const EnsembleMember member = Trained("a", kClassifier, more);
    const auto found = ReadMembers({member.train_dir}, "", {});
    ASSERT_THAT(found, IsOk());
    EXPECT_EQ((*found)[0].training.DebugString(),
              member.training.DebugString());
  }
}

TEST_F(EnsembleMemberTest, AGivenTrainingIsForThoseThatKeepNone) {
  const std::string a = NewTrainDir("a"), b = NewTrainDir("b");
  Keep(a, kRegression);
  Keep(dir_, kClassifier);
  const std::string given = dir_ + "/kept_training.textproto";
  const auto members = ReadMembers({a, b}, given, {});
  ASSERT_THAT(members, IsOk());
  EXPECT_EQ((*members)[0].training.model().name(), "linear_regression");
  EXPECT_EQ((*members)[1].training.model().name(), "softmax_regression");
  EXPECT_THAT(ReadMembers({a, b}, "", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(b), HasSubstr("--training=FILE"))));
  EXPECT_THAT(ReadMembers({a}, given, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--training: leave it out")));
}

TEST_F(EnsembleMemberTest, ARunIsNamedOnce) {
  for (const std::vector<std::string>& runs :
       {std::vector<std::string>{"a", "b", "a"}, {"a", ""}}) {
    EXPECT_THAT(ReadMembers(runs, "", {}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST_F(EnsembleMemberTest, OtherRowsAreRefusedWithBothMembers) {
  for (const char* other :
       {"input.dir=elsewhere", "input.label_column=y", "input.type=npy"}) {
    EXPECT_THAT(CheckSameData({Member("a"), Member("b", {other})}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("'a' with input {"),
                               HasSubstr("'b' with input {"))))
        << other;
  }
}

TEST_F(EnsembleMemberTest, OtherWaysToTrainAndToReadAreTheSameRows) {
  EXPECT_THAT(
      CheckSameData({Member("a"),
                     Member("b", {"input.batch_size=2", "input.threads=2",
                                  "input.map={type: 'normalize' attr {name: "
                                  "'mean' s: '1'} attr {name: 'std' s: '2'}}"}),
                     Member("c", {"model.layer={name: 'out' type: 'dense' attr "
                                  "{name: 'units' i: 2}}, {name: 'loss' type: "
                                  "'softmax_cross_entropy'}"})}),
      IsOk());
}

TEST_F(EnsembleMemberTest, OtherClassesAreRefusedWithBothMembers) {
  const EnsembleMember a = Member("a"), b = Member("b"), c = Member("c");
  std::ofstream(b.train_dir + "/classes.json") << "[\"left\", \"right\"]";
  EXPECT_THAT(CheckSameData({a, b, c}), IsOk());
  std::ofstream(c.train_dir + "/classes.json") << "[\"right\", \"left\"]";
  EXPECT_THAT(CheckSameData({a, b, c}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'b' with left, right"),
                             HasSubstr("'c' with right, left"))));
}

TEST_F(EnsembleMemberTest, RowsAreReadAlikeWithTheSameStagesAndShape) {
  const std::string text = RowText(Member("a"));
  EXPECT_EQ(RowText(Member("b", {"seed=9", "input.batch_size=2"})), text);
  EXPECT_NE(RowText(Member("b", {"model.input_shape=2,1,1"})), text);
  EXPECT_NE(RowText(Member("b", {"input.map={type: 'normalize' attr {name: "
                                 "'mean' s: '1'} attr {name: 'std' s: '2'}}"})),
            text);
}

}  // namespace
}  // namespace muster
