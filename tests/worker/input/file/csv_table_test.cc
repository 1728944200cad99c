#include "worker/input/file/csv_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CsvTableTest : public testing::Test {
 protected:
  absl::StatusOr<CsvTable> Read(const std::string& content,
                                const CsvTable::Options& options = {}) {
    return CsvTable::Read({WriteFile(dir_, "data.csv", content)}, options);
  }

  void ExpectRefused(const std::string& content, const std::string& reason,
                     const CsvTable::Options& options = {}) {
    EXPECT_THAT(Read(content, options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("data.csv'"), HasSubstr(reason))));
  }

  static std::vector<float> Row(const CsvTable& table, int64_t row) {
    std::vector<float> values(table.columns().size());
    table.ReadRow(row, absl::MakeSpan(values));
    return values;
  }

  static std::vector<float> Labels(const CsvTable& table) {
    std::vector<float> labels;
    for (int64_t i = 0; i < table.num_rows(); ++i) {
      labels.push_back(table.Labels(i)[0]);
    }
    return labels;
  }

  const std::string dir_ = MakeTempDir();
};

TEST_F(CsvTableTest, ReadsAllColumnsButTheLabelAsNumbers) {
  const absl::StatusOr<CsvTable> table =
      Read(" a , label,b\n1, 4 ,-2.5e1\n 0.1,2,1e-60\n");
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->num_rows(), 2);
  EXPECT_THAT(Row(*table, 0), ElementsAre(1.0f, -25.0f));
  EXPECT_THAT(Row(*table, 1), ElementsAre(0.1f, 0.0f));
  EXPECT_EQ(table->columns()[1].name, "b");
}

TEST_F(CsvTableTest, KeepsClassesThatAreIndices) {
  const absl::StatusOr<CsvTable> table = Read("x,label\n0,7\n0,2\n0,7\n");
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(Labels(*table), ElementsAre(7, 2, 7));
  EXPECT_THAT(table->labels()[0].classes, IsEmpty());
}

TEST_F(CsvTableTest, SortsClassesThatAreNames) {
  const absl::StatusOr<CsvTable> table =
      Read("x,label\n0,dog\n0,cat\n0,\"eel, fried\"\n0,dog\n0,ant\n");
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(Labels(*table), ElementsAre(2, 1, 3, 2, 0));
  EXPECT_THAT(table->labels()[0].classes,
              ElementsAre("ant", "cat", "dog", "eel, fried"));
}

TEST_F(CsvTableTest, RefusesNumbersAmongNames) {
  ExpectRefused("x,label\n0,dog\n0,7\n", "found '7' and 'dog'");
  ExpectRefused("x,label\n0,7\n0,-1\n", "line 3: column 'label'");
}

TEST_F(CsvTableTest, TakesTheClassesOfAnotherTable) {
  CsvTable::Options options;
  options.labels[0].classes = {"cat", "dog"};
  const absl::StatusOr<CsvTable> table = Read("x,label\n0,dog\n", options);
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(Labels(*table), ElementsAre(1));
  EXPECT_THAT(table->labels()[0].classes, ElementsAre("cat", "dog"));
  ExpectRefused("x,label\n0,dog\n0,dot\n",
                "line 3: column 'label': unknown class 'dot'; did you mean",
                options);
}

TEST_F(CsvTableTest, ChoosesColumnsByNameOrNumber) {
  CsvTable::Options options;
  options.columns = {{"c", CsvType::kInteger}, {"a", CsvType::kClass}};
  options.labels = {{"b", CsvType::kFloat}};
  const absl::StatusOr<CsvTable> named =
      Read("a,b,c,d\nv,1.5,16777216,text\nu,2,-3,\n", options);
  ASSERT_THAT(named, IsOk());
  EXPECT_THAT(Row(*named, 0), ElementsAre(16777216.0f, 1.0f));
  EXPECT_THAT(Row(*named, 1), ElementsAre(-3.0f, 0.0f));
  EXPECT_THAT(Labels(*named), ElementsAre(1.5f, 2.0f));

  options = {};
  options.has_header = false;
  options.labels[0].name = "0";
  const absl::StatusOr<CsvTable> numbered = Read("3,1,2\n", options);
  ASSERT_THAT(numbered, IsOk());
  EXPECT_THAT(Row(*numbered, 0), ElementsAre(1, 2));
  EXPECT_THAT(Labels(*numbered), ElementsAre(3));
}

TEST_F(CsvTableTest, ReadsATableWithoutLabels) {
  CsvTable::Options options;
  options.labels.clear();
  const absl::StatusOr<CsvTable> table = Read("a,b\n1,2\n", options);
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(Row(*table, 0), ElementsAre(1, 2));
}

TEST_F(CsvTableTest, ReadsManyFilesAsOneTable) {
  const std::string a = WriteFile(dir_, "a.tsv", "x\tlabel\n1\tn\n2\tm\n");
  const std::string b = WriteFile(dir_, "b.tsv.gz", Gzip("x\tlabel\n3\tl\n"));
  const absl::StatusOr<CsvTable> table = CsvTable::Read({a, b}, {});
  ASSERT_THAT(table, IsOk());
  EXPECT_THAT(Row(*table, 2), ElementsAre(3));
  EXPECT_THAT(Labels(*table), ElementsAre(2, 1, 0));
  EXPECT_EQ(table->Place(2), "row 0 of '" + b + "'");

  const std::string other = WriteFile(dir_, "c.tsv", "x\ty\n1\tn\n");
  EXPECT_THAT(CsvTable::Read({a, other}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("c.tsv' line 1"),
                             HasSubstr("differ from column 2 on"))));
}

TEST_F(CsvTableTest, ReadsMoreRowsThanABlockHas) {
  std::string content = "x,label\n";
  constexpr int kRows = 200'000;
  for (int i = 0; i < kRows; ++i) content += std::to_string(i) + ",1\n";
  const absl::StatusOr<CsvTable> table = Read(content);
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->num_rows(), kRows);
  EXPECT_THAT(Row(*table, kRows - 1), ElementsAre(kRows - 1));
  EXPECT_THAT(Row(*table, 131'072), ElementsAre(131'072));
}

TEST_F(CsvTableTest, RefusesRaggedAndMissingFields) {
  ExpectRefused("a,label\n1,2\n\n1\n",
                "line 4: wanted 2 fields, as the header has, found 1");
  ExpectRefused("a,label\n1,2,3\n", "line 2: wanted 2 fields");
  ExpectRefused("a,label\n,2\n",
                "line 2: column 'a': wanted a value, found none");
  ExpectRefused("a,label\n1,\n", "column 'label': wanted a value");
}

TEST_F(CsvTableTest, RefusesValuesOfAnotherType) {
  for (const char* value : {"one", "nan", "inf", "1e39", "1.0x"}) {
    ExpectRefused(std::string("a,label\n") + value + ",2\n",
                  std::string("line 2: column 'a': wanted a finite number, "
                              "found '") +
                      value + "'");
  }
  CsvTable::Options options;
  options.columns = {{"a", CsvType::kInteger}};
  for (const char* value : {"1.5", "16777217", "99999999999", "x"}) {
    ExpectRefused(std::string("a,label\n") + value + ",2\n",
                  "wanted an integer from -16777216 to 16777216", options);
  }
}

TEST_F(CsvTableTest, RefusesHeadersThatDoNotFit) {
  ExpectRefused("a,labels\n1,2\n", "unknown column 'label'; did you mean");
  ExpectRefused("a,a,label\n1,2,3\n", "two columns are named 'a'");
  ExpectRefused("", "found an empty file");
  ExpectRefused("a,label\n", "found only the header");
}

}  // namespace
}  // namespace muster
