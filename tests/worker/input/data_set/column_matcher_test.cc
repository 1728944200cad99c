// How the columns and classes of files become those of a run.
#include "worker/input/data_set/column_matcher.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "worker/input/data_set/create_data_set.h"
#include "worker/input/data_set/data_schema.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ColumnMatcherTest : public testing::Test {
 protected:
  ColumnMatcherTest() {
    spec_.set_type("csv");
    spec_.set_dir(dir_);
  }

  absl::StatusOr<std::unique_ptr<DataSet>> Open(Split split = Split::kTrain) {
    return CreateDataSet(spec_, Shape({2}), /*seed=*/1, split, labels_, run_);
  }

  // Makes what is in the folder the run.
  void MakeRun() {
    const auto train = Open();
    ASSERT_THAT(train, IsOk());
    run_ = std::make_shared<const DataSchema>((*train)->Schema());
  }

  static std::vector<float> Values(const DataSet& data_set, int64_t row) {
    std::vector<float> values(data_set.example_shape().num_elements());
    std::vector<float> targets(data_set.num_targets());
    EXPECT_THAT(
        data_set.Read(row, {values.data(), nullptr,
                            targets.empty() ? nullptr : targets.data()}),
        IsOk());
    values.insert(values.end(), targets.begin(), targets.end());
    return values;
  }

  static int32_t Class(const DataSet& data_set, int64_t row) {
    std::vector<float> values(data_set.example_shape().num_elements());
    int32_t label = -1;
    EXPECT_THAT(data_set.Read(row, {values.data(), &label}), IsOk());
    return label;
  }

  const std::string dir_ = MakeTempDir();
  InputSpec spec_;
  LabelSpec labels_;
  std::shared_ptr<const DataSchema> run_;
};

TEST_F(ColumnMatcherTest, TestHalfWithTurnedColumns_HasTheRunsOrder) {
  WriteFile(dir_, "train.csv", "a,b,label\n1,2,0\n3,4,1\n");
  WriteFile(dir_, "test.csv", "label,b,a\n1,20,10\n");
  MakeRun();
  const auto test = Open(Split::kTest);
  ASSERT_THAT(test, IsOk());
  EXPECT_THAT(Values(**test, 0), ElementsAre(10, 20));
  EXPECT_EQ(Class(**test, 0), 1);
  EXPECT_EQ((*test)->num_classes(), 2);
}

TEST_F(ColumnMatcherTest, SecondFileWithTurnedColumns_HasTheFirstOnesOrder) {
  WriteFile(dir_, "train-1.csv", "a,b,label\n1,2,0\n");
  WriteFile(dir_, "train-2.csv", "label,b,a\n1,20,10\n");
  const auto train = Open();
  ASSERT_THAT(train, IsOk());
  EXPECT_THAT(Values(**train, 1), ElementsAre(10, 20));
  EXPECT_EQ(Class(**train, 1), 1);
  WriteFile(dir_, "train-2.csv", "label,c,a\n1,20,10\n");
  EXPECT_THAT(Open(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("train-2.csv': it lacks the column "
                                       "'b' of '"),
                             HasSubstr("train-1.csv'"))));
}

TEST_F(ColumnMatcherTest, Schema_SaysWhatTheHalfIs) {
  spec_.set_label_column("kind");
  WriteFile(dir_, "train.csv", "a,kind,b\n1,dog,2\n3,cat,4\n");
  MakeRun();
  EXPECT_EQ(run_->format(), "csv");
  ASSERT_EQ(run_->column_size(), 2);
  EXPECT_EQ(run_->column(1).name(), "b");
  EXPECT_EQ(run_->column(1).kind(), "number");
  EXPECT_FALSE(run_->column(1).any_shape());
  EXPECT_EQ(run_->label().kind(), kClassLabel);
  EXPECT_THAT(run_->label().column(), ElementsAre("kind"));
  EXPECT_THAT(run_->label().class_name(), ElementsAre("cat", "dog"));
  EXPECT_EQ(run_->label().num_classes(), 2);
  EXPECT_EQ(run_->training().rows(), 2);
  EXPECT_EQ(run_->training().files().files(0).name(), "train.csv");
  EXPECT_FALSE(run_->has_test());
}

TEST_F(ColumnMatcherTest, ClassesHaveTheRunsNumbers_WhicheverOccur) {
  WriteFile(dir_, "train.csv", "a,b,label\n1,2,ant\n1,2,bee\n1,2,cat\n");
  MakeRun();
  WriteFile(dir_, "train.csv", "a,b,label\n1,2,cat\n1,2,bee\n");
  const auto train = Open();
  ASSERT_THAT(train, IsOk());
  EXPECT_EQ(Class(**train, 0), 2);
  EXPECT_EQ(Class(**train, 1), 1);
  EXPECT_THAT((*train)->ClassNames(), ElementsAre("ant", "bee", "cat"));
  EXPECT_THAT((*train)->Remarks(),
              ElementsAre("no row has one of these of the run's 3 classes, "
                          "which keep their numbers: ant"));
  // The training half is not asked for names again.
  ASSERT_EQ(remove((dir_ + "/train.csv").c_str()), 0);
  WriteFile(dir_, "test.csv", "a,b,label\n1,2,cat\n");
  const auto test = Open(Split::kTest);
  ASSERT_THAT(test, IsOk());
  EXPECT_EQ(Class(**test, 0), 2);
  EXPECT_THAT((*test)->Remarks(), IsEmpty());
}

TEST_F(ColumnMatcherTest, NumberBeyondTheRunsClasses_IsRefusedWithItsPlace) {
  WriteFile(dir_, "train.csv", "a,b,label\n1,2,0\n1,2,1\n");
  MakeRun();
  WriteFile(dir_, "train.csv", "a,b,label\n1,2,0\n1,2,5\n");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("line 3 of '"),
                                     HasSubstr("is of class 5"),
                                     HasSubstr("its classes are 0 to 1"))));
  WriteFile(dir_, "train.csv", "a,b,label\n1,2,0\n");
  const auto train = Open();
  ASSERT_THAT(train, IsOk());
  EXPECT_EQ((*train)->num_classes(), 2);
}

TEST_F(ColumnMatcherTest, TurnedLabelColumns_AreNotBelieved) {
  labels_ = {LabelKind::kTargets, 2};
  spec_.set_label_column("y1,y2");
  WriteFile(dir_, "train.csv", "a,b,y1,y2\n1,2,3,4\n");
  MakeRun();
  WriteFile(dir_, "train.csv", "y2,y1,b,a\n4,3,2,1\n");
  for (const char* const said : {"", "y1, y2"}) {
    spec_.set_label_column(said);
    const auto train = Open();
    ASSERT_THAT(train, IsOk());
    EXPECT_THAT(Values(**train, 0), ElementsAre(1, 2, 3, 4));
  }
  spec_.set_label_column("y2,y1");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("input.label_column: the run has y1, "
                                         "y2, found y2, y1")));
}

TEST_F(ColumnMatcherTest, Prediction_NeedsNoLabelsAndReadsNone) {
  WriteFile(dir_, "train.csv", "a,label,b\n1,cat,2\n1,dog,2\n");
  MakeRun();
  labels_.kind = LabelKind::kNone;
  for (const char* const text : {"b,a\n20,10\n", "label,b,a\nelk,20,10\n"}) {
    WriteFile(dir_, "test.csv", text);
    const auto test = Open(Split::kTest);
    ASSERT_THAT(test, IsOk());
    EXPECT_THAT(Values(**test, 0), ElementsAre(10, 20));
    EXPECT_THAT((*test)->ClassNames(), ElementsAre("cat", "dog"));
    EXPECT_THAT((*test)->Remarks(), IsEmpty());
    EXPECT_EQ((*test)->Schema().label().kind(), kNoLabel);
  }
}

TEST_F(ColumnMatcherTest, OtherKindOfLabels_IsRefused) {
  WriteFile(dir_, "train.csv", "a,b,label\n1,2,0\n");
  MakeRun();
  labels_ = {LabelKind::kTargets, 1};
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("labels: the run has class, found "
                                         "targets")));
  labels_ = {};
  spec_.set_type("image_folder");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("classes: the run has numbers")));
}

TEST_F(ColumnMatcherTest, SchemaOfMoreClassesThanAnyDataHave_IsRefused) {
  WriteFile(dir_, "train.csv", "a,b,label\n1,2,0\n");
  MakeRun();
  for (const int64_t classes : {int64_t{-1}, INT64_MAX}) {
    DataSchema run = *run_;
    run.mutable_label()->set_num_classes(classes);
    run_ = std::make_shared<const DataSchema>(run);
    EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr(absl::StrCat(classes, " classes"))));
  }
}

TEST_F(ColumnMatcherTest, ManyColumnsThatAreLeftOut_AreOneBoundedLine) {
  WriteFile(dir_, "train.csv", "a,b,label\n1,2,0\n");
  MakeRun();
  std::string names;
  std::string zeros;
  for (int i = 0; i < 2000; ++i) {
    absl::StrAppend(&names, "x", i, ",");
    zeros += "0,";
  }
  WriteFile(dir_, "train-1.csv", names + "b,a,label\n" + zeros + "2,1,0\n");
  ASSERT_EQ(remove((dir_ + "/train.csv").c_str()), 0);
  const auto train = Open();
  ASSERT_THAT(train, IsOk());
  EXPECT_THAT(Values(**train, 0), ElementsAre(1, 2));
  ASSERT_EQ((*train)->Remarks().size(), 1);
  EXPECT_THAT((*train)->Remarks()[0],
              AllOf(HasSubstr("x0, x1, "), HasSubstr("and 1980 others")));
}

TEST_F(ColumnMatcherTest, NamesThatAreNoUtf8_AreFoundAgain) {
  WriteFile(dir_, "train.csv",
            "caf\xe9,a\\b,label\n1,2,\xe9t\xe9\n3,4,h\\iver\n");
  MakeRun();
  EXPECT_EQ(run_->column(0).name(), "caf\\xE9");
  EXPECT_EQ(run_->column(1).name(), "a\\\\b");
  EXPECT_THAT(run_->label().class_name(),
              ElementsAre("h\\\\iver", "\\xE9t\\xE9"));
  DataSchema copy;
  ASSERT_TRUE(copy.ParseFromString(run_->SerializeAsString()));
  run_ = std::make_shared<const DataSchema>(copy);
  WriteFile(dir_, "test.csv", "label,a\\b,caf\xe9\n\xe9t\xe9,20,10\n");
  const auto test = Open(Split::kTest);
  ASSERT_THAT(test, IsOk());
  EXPECT_THAT(Values(**test, 0), ElementsAre(10, 20));
  EXPECT_EQ(Class(**test, 0), 1);
  EXPECT_THAT((*test)->ClassNames(), ElementsAre("h\\iver", "\xe9t\xe9"));
}

TEST_F(ColumnMatcherTest, AHundredThousandNamedClasses_HaveTheirNumbers) {
  constexpr int kMany = 100000;
  std::string text = "a,b,label\n";
  for (int i = 0; i < kMany; ++i) {
    absl::StrAppend(&text, "1,2,class", kMany + i, "\n");
  }
  WriteFile(dir_, "train.csv", text);
  MakeRun();
  ASSERT_EQ(run_->label().class_name_size(), kMany);
  const auto train = Open();
  ASSERT_THAT(train, IsOk());
  EXPECT_EQ(Class(**train, 7), 7);
  EXPECT_EQ(Class(**train, kMany - 1), kMany - 1);
}

}  // namespace
}  // namespace muster
