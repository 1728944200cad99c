#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/ticking_clock.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "worker/input/data_set/create_data_set.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CsvPartTest : public testing::Test {
 protected:
  CsvPartTest() {
    spec_.set_type("csv");
    spec_.set_dir(dir_);
  }

  absl::StatusOr<std::unique_ptr<DataSet>> Open(int64_t values,
                                                Split split = Split::kTrain,
                                                const LabelSpec& labels = {}) {
    return CreateDataSet(spec_, Shape({values}), /*seed=*/1, split, labels);
  }

  absl::StatusOr<std::unique_ptr<DataSet>> Read(const std::string& content,
                                                int64_t values = 1) {
    WriteFile(dir_, "train.csv", content);
    return Open(values);
  }

  void ExpectRefused(const std::string& content, const std::string& reason) {
    EXPECT_THAT(Read(content),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("train.csv'"), HasSubstr(reason))));
  }

  static std::vector<float> Row(const DataSet& data_set, int64_t row) {
    std::vector<float> values(data_set.example_shape().num_elements());
    EXPECT_THAT(data_set.Read(row, {values.data()}), IsOk());
    return values;
  }

  static std::vector<int32_t> Labels(const DataSet& data_set) {
    std::vector<int32_t> labels(data_set.num_examples());
    std::vector<float> values(data_set.example_shape().num_elements());
    for (size_t i = 0; i < labels.size(); ++i) {
      EXPECT_THAT(data_set.Read(i, {values.data(), &labels[i]}), IsOk());
    }
    return labels;
  }

  const std::string dir_ = MakeTempDir();
  InputSpec spec_;
};

// Each 256 rows of a work take 10 s, over all files.
TEST_F(CsvPartTest, LongOpening_ShowsTheRowsOfEachWork) {
  std::string rows = "x,label\n";
  for (int i = 0; i < 200; ++i) absl::StrAppend(&rows, i, ",a\n");
  WriteFile(dir_, "train1.csv", rows);
  WriteFile(dir_, "train2.csv", rows);
  const TickingClock clock(absl::Seconds(10));
  ReportedLines lines;
  ASSERT_THAT(
      CreateDataSet(spec_, Shape({1}), /*seed=*/1, Split::kTrain, {},
                    /*run=*/nullptr, {lines.reporter(), nullptr, &clock}),
      IsOk());
  EXPECT_THAT(lines.lines(),
              ElementsAre("I opening of the training data: 256 rows so far, "
                          "25.6 rows/s",
                          "I classes of the training data: 256 of 400 rows, "
                          "25.6 rows/s, 5s left",
                          "I labels of the training data: 256 of 400 rows, "
                          "25.6 rows/s, 5s left"));
}

TEST_F(CsvPartTest, Columns_AreNumbersButTheLabel) {
  const auto table = Read(" a , label,b\n1, 4 ,-2.5e1\n 0.1,2,1e-60\n", 2);
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ((*table)->num_examples(), 2);
  EXPECT_THAT(Row(**table, 0), ElementsAre(1.0f, -25.0f));
  EXPECT_THAT(Row(**table, 1), ElementsAre(0.1f, 0.0f));
}

TEST_F(CsvPartTest, ClassesThatAreIndices_AreKept) {
  const auto table = Read("x,label\n0,7\n0,2\n0,7\n");
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(Labels(**table), ElementsAre(7, 2, 7));
  EXPECT_THAT((*table)->ClassNames(), IsEmpty());
  EXPECT_EQ((*table)->num_classes(), 8);
  EXPECT_EQ((*table)->LargestLabelPlace(),
            "line 2 of '" + dir_ + "/train.csv'");
}

TEST_F(CsvPartTest, ClassesThatAreNames_AreSorted) {
  const auto table =
      Read("x,label\n0,dog\n0,cat\n0,\"eel, fried\"\n0,dog\n0,ant\n");
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(Labels(**table), ElementsAre(2, 1, 3, 2, 0));
  EXPECT_THAT((*table)->ClassNames(),
              ElementsAre("ant", "cat", "dog", "eel, fried"));
}

TEST_F(CsvPartTest, NumbersAmongNames_AreRefused) {
  ExpectRefused("x,label\n0,dog\n0,7\n", "found '7' and 'dog'");
  ExpectRefused("x,label\n0,7\n0,-1\n", "line 3 of");
}

TEST_F(CsvPartTest, ClassThatTheTrainingHalfLacks_IsRefused) {
  WriteFile(dir_, "train.csv", "x,label\n0,dog\n0,cat\n");
  WriteFile(dir_, "test.csv", "x,label\n0,dog\n");
  const auto table = Open(1, Split::kTest);
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(Labels(**table), ElementsAre(1));
  EXPECT_THAT((*table)->ClassNames(), ElementsAre("cat", "dog"));
  WriteFile(dir_, "test.csv", "x,label\n0,dog\n0,dot\n");
  EXPECT_THAT(
      Open(1, Split::kTest),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("line 3 of"), HasSubstr("column 'label'"),
                     HasSubstr("unknown class 'dot'; did you mean"))));
}

TEST_F(CsvPartTest, WithoutLabels_AllColumnsAreValues) {
  WriteFile(dir_, "train.csv", "a,b\n1,2\n");
  const auto table = Open(2, Split::kTrain, {LabelKind::kNone});
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(Row(**table, 0), ElementsAre(1, 2));
}

TEST_F(CsvPartTest, ManyFiles_AreOneSet) {
  WriteFile(dir_, "train-a.tsv", "x\tlabel\n1\tn\n2\tm\n");
  WriteFile(dir_, "train-b.tsv.gz", Gzip("x\tlabel\n3\tl\n"));
  const auto table = Open(1);
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(Row(**table, 2), ElementsAre(3));
  EXPECT_THAT(Labels(**table), ElementsAre(2, 1, 0));
  WriteFile(dir_, "train-c.tsv", "x\ty\n1\tn\n");
  EXPECT_THAT(Open(1), StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("train-c.tsv'"),
                                      HasSubstr("unknown column 'label'"))));
}

TEST_F(CsvPartTest, MoreRowsThanABlock_AreRead) {
  // A block has 65,536 rows of 7 values and a target; then a tail follows.
  for (const int rows : {65'536, 2 * 65'536 + 3}) {
    std::string content = "a,b,c,d,e,f,g,label\n";
    for (int i = 0; i < rows; ++i) {
      absl::StrAppend(&content, i, ",0,0,0,0,0,0,", i + 1, "\n");
    }
    WriteFile(dir_, "train.csv", content);
    const auto table = Open(7, Split::kTrain, {LabelKind::kTargets, 1});
    ASSERT_THAT(table, IsOk());
    ASSERT_EQ((*table)->num_examples(), rows);
    for (int i = 0; i < rows; ++i) {
      float values[7], target;
      ASSERT_THAT((*table)->Read(i, {values, nullptr, &target}), IsOk());
      ASSERT_EQ(values[0], i);
      ASSERT_EQ(target, i + 1);
    }
  }
}

TEST_F(CsvPartTest, RaggedRowsAndMissingFields_AreRefused) {
  ExpectRefused("a,label\n1,2\n\n1\n",
                "wanted 2 fields, as the first line has, found 1");
  ExpectRefused("a,label\n1,2\n\n1\n", "line 4 of");
  ExpectRefused("a,label\n1,2,3\n", "wanted 2 fields");
  ExpectRefused("a,label\n,2\n",
                "column 'a': wanted a finite number, found none");
  ExpectRefused("a,label\n1,\n", "wanted a class, found none");
  ExpectRefused(std::string("a,label\n1,\0\n", 11), "a zero byte");
}

TEST_F(CsvPartTest, ValuesOfAnotherType_AreRefused) {
  for (const char* value : {"one", "nan", "inf", "1e39", "1.0x"}) {
    ExpectRefused(std::string("a,label\n") + value + ",2\n",
                  std::string("column 'a': wanted a finite number, found '") +
                      value + "'");
  }
  WriteFile(dir_, "train.csv", "a,label\n1,2\n");
  for (const char* label : {"1.5", "16777217", "99999999999", "x"}) {
    WriteFile(dir_, "test.csv", std::string("a,label\n1,") + label + "\n");
    EXPECT_THAT(
        Open(1, Split::kTest),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("wanted an integer from -16777216 to 16777216")));
  }
}

TEST_F(CsvPartTest, HeadersThatDoNotFit_AreRefused) {
  ExpectRefused("a,labels\n1,2\n", "unknown column 'label'; did you mean");
  ExpectRefused("a,b, a,label\n1,2,3,4\n",
                "two columns are named 'a', 0 and 2 of 0 to 3");
  // As pandas writes an index.
  ExpectRefused(",x,label\n0,1,0\n", "column 0 of 0 to 2 has no name");
  ExpectRefused("x,label,\n1,0,\n", "column 2 of 0 to 2 has no name");
  ExpectRefused("Unnamed: 0,x,label\n0,1,0\n", "column 0 of 0 to 2 has no");
  ExpectRefused("", "found an empty file");
  ExpectRefused("a,label\n", "wanted rows, found none");
}

TEST_F(CsvPartTest, WithoutAHeader_ColumnsAreNamedByPlace) {
  spec_.set_header(false);
  spec_.set_label_column("1");
  const auto table = Read("1.5,7,2.5\n3,2,4\n", 2);
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ((*table)->num_examples(), 2);
  EXPECT_THAT(Row(**table, 0), ElementsAre(1.5f, 2.5f));
  EXPECT_THAT(Row(**table, 1), ElementsAre(3, 4));
  EXPECT_THAT(Labels(**table), ElementsAre(7, 2));
  // Fields that are the same, or empty, are no mistake in a row.
  EXPECT_THAT(Read("5,0,5\n", 2), IsOk());
  ExpectRefused("5,\n", "line 1 of");
  ExpectRefused("5,0\n5\n", "line 2 of");
  spec_.set_label_column("3");
  ExpectRefused("1,2,3\n", "unknown column '3'");
}

TEST_F(CsvPartTest, FirstRowOfNumbers_IsNoHeader) {
  const std::string hint = "--set=input.header=false";
  ExpectRefused("5.1,3.5,0\n4.9,3.0,0\n", hint);
  ExpectRefused("5.1,3.5,0\n4.9,3.0,0\n", "line 1: wanted a header");
  ExpectRefused("0,0,0\n1,1,1\n", hint);
  ExpectRefused("5.1,,0\n", "2 of its 3 fields are numbers");
  ExpectRefused("7\n", hint);
  // The class is a name.
  ExpectRefused("5.1,3.5,setosa\n4.9,3.0,setosa\n", hint);
  spec_.set_label_column("0");
  ExpectRefused("5.1,3.5,0\n4.9,3.0,0\n", hint);
  EXPECT_THAT(Open(3, Split::kTrain, {LabelKind::kNone}).status().message(),
              HasSubstr(hint));
}

TEST_F(CsvPartTest, NamesThatAreNumbers_AreAHeader) {
  // As pandas names the columns of an array.
  spec_.set_label_column("2");
  const auto table = Read("0,1,2\n5,6,1\n", 2);
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ((*table)->num_examples(), 1);
  EXPECT_THAT(Row(**table, 0), ElementsAre(5, 6));
  spec_.set_label_column("5");
  ExpectRefused("4,5,6\n5,6,1\n", "input.header=true");
  spec_.set_label_column("400.5");
  ExpectRefused("399.5,400,400.5\n5,6,1\n", "input.header=true");
  spec_.set_header(true);
  EXPECT_THAT(Read("399.5,400,400.5\n5,6,1\n", 2), IsOk());
  ExpectRefused("1,1,400.5\n5,6,1\n", "two columns are named '1'");
}

TEST_F(CsvPartTest, NumbersThatNameTheColumnsOfTheRun_AreAHeader) {
  WriteFile(dir_, "test.csv", "400.5,399.5\n6,5\n");
  auto run = std::make_shared<DataSchema>();
  for (const char* name : {"399.5", "400.5"}) {
    DataColumn* const column = run->add_column();
    column->set_name(name);
    column->set_kind("number");
  }
  const auto open = [this](std::shared_ptr<const DataSchema> schema) {
    return CreateDataSet(spec_, Shape({2}), /*seed=*/1, Split::kTest,
                         {LabelKind::kNone}, std::move(schema));
  };
  EXPECT_THAT(open(run), IsOk());
  run->add_column()->set_name("401.5");
  EXPECT_THAT(open(run), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("input.header=false")));
}

// It is no damage, and figures without it would be too good.
TEST_F(CsvPartTest,
       AClassThatTheRunDoesNotKnow_IsRefusedAlsoWhereBadRowsAreSkipped) {
  WriteFile(dir_, "test.csv", "x,label\n1,cat\n2,fox\n");
  auto run = std::make_shared<DataSchema>();
  DataColumn* const column = run->add_column();
  column->set_name("x");
  column->set_kind("number");
  DataLabel* const label = run->mutable_label();
  label->set_kind("class");
  label->add_column("label");
  label->set_num_classes(2);
  label->add_class_name("cat");
  label->add_class_name("dog");
  spec_.set_on_bad_record(SKIP);
  EXPECT_THAT(
      CreateDataSet(spec_, Shape({1}), /*seed=*/1, Split::kTest, {}, run),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("unknown class 'fox'")));
}

TEST_F(CsvPartTest, OtherDelimiters_AreNamed) {
  ExpectRefused("x;y;label\n1,5;2;0\n", "they are separated by ';'");
  ExpectRefused("sep=;\nx;y\n", "they are separated by ';'");
  ExpectRefused("x|label\n1|0\n", "they are separated by '|'");
  ExpectRefused("x\tlabel\n1\t0\n", "call it .tsv");
  spec_.set_header(false);
  ExpectRefused("1;2;0\n1;2;0\n", "they are separated by ';'");
  const std::string dir = MakeTempDir();
  WriteFile(dir, "train.tsv", "x,label\n1,0\n");
  spec_.set_dir(dir);
  EXPECT_THAT(Open(1), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("call it .csv")));
}

TEST_F(CsvPartTest, HeaderOfAnotherType_IsRefused) {
  spec_.set_type("npy");
  spec_.set_header(false);
  EXPECT_THAT(Open(1), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("input.header means nothing")));
}

}  // namespace
}  // namespace muster
