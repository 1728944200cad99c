#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
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
  std::string content = "x,label\n";
  constexpr int kRows = 200'000;
  for (int i = 0; i < kRows; ++i) content += std::to_string(i) + ",1\n";
  const auto table = Read(content);
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ((*table)->num_examples(), kRows);
  EXPECT_THAT(Row(**table, kRows - 1), ElementsAre(kRows - 1));
  EXPECT_THAT(Row(**table, 262'144 - 100'000), ElementsAre(162'144));
}

TEST_F(CsvPartTest, RaggedRowsAndMissingFields_AreRefused) {
  ExpectRefused("a,label\n1,2\n\n1\n",
                "wanted 2 fields, as the header has, found 1");
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
  ExpectRefused("a,a,label\n1,2,3\n", "two columns are named 'a'");
  ExpectRefused("", "found an empty file");
  ExpectRefused("a,label\n", "wanted rows, found none");
}

}  // namespace
}  // namespace muster
