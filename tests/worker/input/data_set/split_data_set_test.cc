#include "worker/input/data_set/split_data_set.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "worker/input/data_set/create_data_set.h"
#include "worker/input/stream/create_stream.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;

constexpr uint64_t kSeed = 7;
constexpr int kRows = 200;
constexpr Split kHalves[] = {Split::kTrain, Split::kTest, Split::kValidation};
constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

class SplitDataSetTest : public testing::Test {
 protected:
  SplitDataSetTest() {
    spec_.set_type("csv");
    spec_.set_dir(dir_);
    spec_.set_test_fraction(0.25);
    WriteRows(kRows);
  }

  // Row i has the value i, and the class "a" but for the last, "z".
  void WriteRows(int rows) {
    std::string content = "x,label\n";
    for (int i = 0; i < rows; ++i) {
      absl::StrAppend(&content, i, i + 1 == rows ? ",z\n" : ",a\n");
    }
    WriteFile(dir_, "train.csv", content);
  }

  absl::StatusOr<std::unique_ptr<DataSet>> Open(
      Split split, const LabelSpec& labels = {},
      std::shared_ptr<const DataSchema> run = nullptr, uint64_t seed = kSeed) {
    return CreateDataSet(spec_, Shape({1}), seed, split, labels,
                         std::move(run));
  }

  static std::vector<int> Values(const DataSet& data_set) {
    std::vector<int> values;
    for (int64_t i = 0; i < data_set.num_examples(); ++i) {
      float value = -1;
      EXPECT_THAT(data_set.Read(i, {&value}), IsOk());
      values.push_back(static_cast<int>(value));
    }
    return values;
  }

  std::vector<int> ValuesOf(Split split) {
    const auto data_set = Open(split);
    EXPECT_THAT(data_set, IsOk());
    return data_set.ok() ? Values(**data_set) : std::vector<int>();
  }

  const std::string dir_ = MakeTempDir();
  InputSpec spec_;
};

// A run must have the same test rows on every machine and in every version.
TEST_F(SplitDataSetTest, TheTestRowsAreThese) {
  std::vector<int> rows;
  for (int i = 0; i < 40; ++i) {
    if (HalfOfRow({0.25}, kSeed, i) == Split::kTest) rows.push_back(i);
    const Split with_validation = HalfOfRow({0.25, 0.5}, kSeed, i);
    EXPECT_EQ(with_validation == Split::kTest,
              !rows.empty() && rows.back() == i)
        << "a validation half moves no test row";
  }
  EXPECT_THAT(rows, ElementsAre(0, 1, 9, 14, 16, 18, 19, 21, 26, 33, 35, 39));
}

TEST_F(SplitDataSetTest, EachRow_IsInOneHalf) {
  spec_.set_validation_fraction(0.25);
  std::multiset<int> all;
  for (const Split split : kHalves) {
    const std::vector<int> rows = ValuesOf(split);
    all.insert(rows.begin(), rows.end());
    // 50 are expected, and 100; the standard deviation is 6 and 7.
    EXPECT_NEAR(rows.size(), split == Split::kTrain ? 100 : 50, 20);
  }
  EXPECT_EQ(all.size(), kRows);
  EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), kRows);
}

TEST_F(SplitDataSetTest, AppendedRows_MoveNone) {
  spec_.set_validation_fraction(0.25);
  std::vector<std::vector<int>> before;
  for (const Split split : kHalves) before.push_back(ValuesOf(split));
  WriteRows(kRows + 50);
  for (size_t i = 0; i < before.size(); ++i) {
    std::vector<int> after = ValuesOf(kHalves[i]);
    ASSERT_GT(after.size(), before[i].size());
    after.resize(before[i].size());
    EXPECT_EQ(after, before[i]) << i;
  }
}

TEST_F(SplitDataSetTest, AValidationFraction_IsTakenFromTheTrainingRows) {
  const std::vector<int> test = ValuesOf(Split::kTest);
  const std::vector<int> train = ValuesOf(Split::kTrain);
  spec_.set_validation_fraction(0.25);
  EXPECT_EQ(ValuesOf(Split::kTest), test);
  std::vector<int> both = ValuesOf(Split::kTrain);
  for (const int row : ValuesOf(Split::kValidation)) both.push_back(row);
  std::sort(both.begin(), both.end());
  EXPECT_EQ(both, train);
}

TEST_F(SplitDataSetTest, ATestHalfOfItsOwnFiles_StaysWhole) {
  spec_.set_test_fraction(0);
  spec_.set_validation_fraction(0.25);
  WriteFile(dir_, "test.csv", "x,label\n7,a\n");
  EXPECT_THAT(ValuesOf(Split::kTest), ElementsAre(7));
  EXPECT_EQ(
      ValuesOf(Split::kTrain).size() + ValuesOf(Split::kValidation).size(),
      kRows);
}

// Rows that have these names, and no values.
class NamedRows : public DataSet {
 public:
  explicit NamedRows(std::vector<std::string> names)
      : names_(std::move(names)) {}

  int64_t num_examples() const override { return names_.size(); }
  const Shape& example_shape() const override { return shape_; }
  int64_t num_classes() const override { return 2; }
  std::string RowName(int64_t index) const override { return names_[index]; }
  absl::Status Read(int64_t, const ExampleMemory&) const override {
    return absl::OkStatus();
  }

 private:
  const std::vector<std::string> names_;
  const Shape shape_ = Shape({1});
};

// A picture of the first class lies before those of all others.
TEST_F(SplitDataSetTest, ANamedRowBetweenOthers_MovesNone) {
  const auto names_of_test = [](const std::string& dir, int first) {
    std::vector<std::string> names;
    for (int i = first; i < kRows; ++i) {
      names.push_back(absl::StrCat(dir, "/train/", 1000 + i, ".png"));
    }
    const auto half = SplitDataSet::Create(std::make_unique<NamedRows>(names),
                                           dir, {0.25}, kSeed, Split::kTest);
    EXPECT_THAT(half, IsOk());
    std::set<std::string> found;
    for (int64_t i = 0; i < (*half)->num_examples(); ++i) {
      found.insert((*half)->RowName(i).substr(dir.size()));
    }
    return found;
  };
  const std::set<std::string> before = names_of_test("a", 1);
  std::set<std::string> after = names_of_test("a", 0);
  after.erase("/train/1000.png");
  EXPECT_EQ(after, before);
  EXPECT_EQ(names_of_test("else/where", 1), before) << "by names below the dir";
}

TEST_F(SplitDataSetTest, ALargerFraction_KeepsTheTestRows) {
  const std::vector<int> before = ValuesOf(Split::kTest);
  spec_.set_test_fraction(0.5);
  const std::vector<int> after = ValuesOf(Split::kTest);
  EXPECT_GT(after.size(), before.size());
  for (const int row : before) EXPECT_THAT(after, Contains(row));
}

TEST_F(SplitDataSetTest, Classes_AreThoseOfTheWhole) {
  spec_.set_validation_fraction(0.25);
  for (const Split split : kHalves) {
    const auto data_set = Open(split);
    ASSERT_THAT(data_set, IsOk());
    EXPECT_EQ((*data_set)->num_classes(), 2);
    EXPECT_THAT((*data_set)->ClassNames(), ElementsAre("a", "z"));
  }
}

TEST_F(SplitDataSetTest, Rows_HaveTheirNumbersInTheFile) {
  const auto data_set = Open(Split::kTest, {LabelKind::kNone, 0});
  ASSERT_THAT(data_set, IsOk());
  const std::vector<int> values = Values(**data_set);
  EXPECT_EQ((*data_set)->RowName(0), absl::StrCat(values[0]));
  EXPECT_EQ((*data_set)->RowName(3), absl::StrCat(values[3]));
}

TEST_F(SplitDataSetTest, TheHalf_IsSaidAndInTheSchema) {
  const auto data_set = Open(Split::kTest);
  ASSERT_THAT(data_set, IsOk());
  const int64_t rows = (*data_set)->num_examples();
  EXPECT_THAT((*data_set)->Remarks(),
              Contains(HasSubstr(absl::StrCat(rows, " of 200 rows"))));
  const DataSchema schema = (*data_set)->Schema();
  EXPECT_EQ(schema.test().rows(), rows);
  EXPECT_FALSE(schema.has_training());
  EXPECT_EQ(schema.test_fraction(), 0.25);
  EXPECT_EQ(schema.split_seed(), kSeed);
}

TEST_F(SplitDataSetTest, TheValidationHalf_IsSaidAndInTheSchema) {
  spec_.set_test_fraction(0);
  spec_.set_validation_fraction(0.25);
  const auto data_set = Open(Split::kValidation);
  ASSERT_THAT(data_set, IsOk());
  const int64_t rows = (*data_set)->num_examples();
  EXPECT_THAT((*data_set)->Remarks(),
              Contains(absl::StrCat("input.validation_fraction is 0.25: ", rows,
                                    " of 200 rows are the validation half")));
  const DataSchema schema = (*data_set)->Schema();
  EXPECT_EQ(schema.validation().rows(), rows);
  EXPECT_FALSE(schema.has_training() || schema.has_test());
  EXPECT_EQ(schema.validation_fraction(), 0.25);
  EXPECT_EQ(schema.split_seed(), kSeed);
}

TEST_F(SplitDataSetTest, TheRunsSeed_ChoosesTheRows) {
  const std::vector<int> wanted = ValuesOf(Split::kTest);
  auto run = std::make_shared<DataSchema>();
  run->set_format("csv");
  run->set_test_fraction(0.25);
  run->set_split_seed(kSeed);
  const auto now = Open(Split::kTest, {}, run, /*seed=*/kSeed + 1);
  ASSERT_THAT(now, IsOk());
  EXPECT_EQ(Values(**now), wanted);
  const auto anew = Open(Split::kTest, {}, nullptr, /*seed=*/kSeed + 1);
  ASSERT_THAT(anew, IsOk());
  EXPECT_NE(Values(**anew), wanted);
}

TEST_F(SplitDataSetTest, RowsThatTheRunTrainedOn_AreNoTestRows) {
  auto run = std::make_shared<DataSchema>();
  run->set_format("csv");
  EXPECT_THAT(Open(Split::kTest, {}, run),
              StatusIs(kRefused, HasSubstr("was trained with 0")));
  run->set_test_fraction(0.25);
  spec_.set_test_fraction(0);
  EXPECT_THAT(Open(Split::kTrain, {}, run),
              StatusIs(kRefused, HasSubstr("was trained with 0.25")));
  WriteFile(dir_, "test.csv", "x,label\n1,a\n");
  EXPECT_THAT(Open(Split::kTest, {}, run), IsOk());
}

TEST_F(SplitDataSetTest, RowsOfAnotherFractionThanTheRuns_AreRefused) {
  spec_.set_test_fraction(0);
  auto run = std::make_shared<DataSchema>();
  run->set_format("csv");
  run->set_validation_fraction(0.25);
  run->set_split_seed(kSeed);
  for (const double fraction : {0.0, 0.5}) {
    spec_.set_validation_fraction(fraction);
    EXPECT_THAT(Open(Split::kTrain, {}, run),
                StatusIs(kRefused, HasSubstr("--set=input.validation_fraction="
                                             "0.25, or train anew")));
  }
  EXPECT_THAT(Open(Split::kValidation, {}, run), StatusIs(kRefused));
  spec_.set_validation_fraction(0.25);
  const std::vector<int> wanted = ValuesOf(Split::kValidation);
  const auto now = Open(Split::kValidation, {}, run, /*seed=*/kSeed + 1);
  ASSERT_THAT(now, IsOk());
  EXPECT_EQ(Values(**now), wanted);
}

TEST_F(SplitDataSetTest, FractionsThatAreNone_AreRefused) {
  for (const double fraction :
       {-0.1, 1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    spec_.set_test_fraction(fraction);
    EXPECT_THAT(Open(Split::kTrain),
                StatusIs(kRefused, HasSubstr("input.test_fraction: wanted")));
    spec_.set_test_fraction(0.25);
    spec_.set_validation_fraction(fraction);
    EXPECT_THAT(
        Open(Split::kTrain),
        StatusIs(kRefused, HasSubstr("input.validation_fraction: wanted")));
    spec_.set_validation_fraction(0);
  }
  spec_.set_validation_fraction(0.75);
  EXPECT_THAT(Open(Split::kTrain),
              StatusIs(kRefused, HasSubstr("found 0.25 and 0.75, which leave "
                                           "nothing to train on")));
}

TEST_F(SplitDataSetTest, AnEmptyHalf_IsRefused) {
  WriteRows(1);
  spec_.set_test_fraction(0.001);
  EXPECT_THAT(Open(Split::kTrain), IsOk());
  EXPECT_THAT(Open(Split::kTest),
              StatusIs(kRefused, HasSubstr("of 1 rows leaves none for the "
                                           "test half")));
  spec_.set_test_fraction(0.999);
  EXPECT_THAT(Open(Split::kTrain), StatusIs(kRefused));
  spec_.set_test_fraction(0);
  spec_.set_validation_fraction(0.001);
  EXPECT_THAT(Open(Split::kValidation),
              StatusIs(kRefused, HasSubstr("of 1 rows leaves none for the "
                                           "validation half")));
}

TEST_F(SplitDataSetTest, WithoutAFraction_ThereIsNoValidationHalf) {
  EXPECT_THAT(
      Open(Split::kValidation),
      StatusIs(kRefused, HasSubstr("--set=input.validation_fraction=0.1")));
}

TEST_F(SplitDataSetTest, FilesOfATestHalfToo_AreRefusedByName) {
  WriteFile(dir_, "test.csv", "");
  EXPECT_THAT(Open(Split::kTrain),
              StatusIs(kRefused,
                       AllOf(HasSubstr("/test.csv'"), HasSubstr("leave one"))));
  spec_.set_type("synthetic");
  EXPECT_THAT(Open(Split::kTrain), StatusIs(kRefused, HasSubstr("synthetic")));
  spec_.set_type("idx");
  WriteFile(dir_, "t10k-labels-idx1-ubyte", "");
  EXPECT_THAT(Open(Split::kTrain),
              StatusIs(kRefused, HasSubstr("t10k-labels-idx1-ubyte'")));
}

TEST_F(SplitDataSetTest, AStream_IsRefused) {
  spec_.set_stream(true);
  EXPECT_THAT(Open(Split::kTest),
              StatusIs(kRefused, HasSubstr("input.stream")));
  EXPECT_THAT(CreateStream(spec_, Shape({1}), kSeed, {}, /*num_classes=*/2),
              StatusIs(kRefused, HasSubstr("input.stream")));
  spec_.set_test_fraction(0);
  spec_.set_validation_fraction(0.25);
  EXPECT_THAT(CreateStream(spec_, Shape({1}), kSeed, {}, /*num_classes=*/2),
              StatusIs(kRefused, HasSubstr("input.validation_fraction does not "
                                           "go with input.stream")));
}

TEST_F(SplitDataSetTest, IdxRows_AreDividedToo) {
  WriteDataSet(dir_, kRows, 1);
  for (const char* name :
       {"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"})
    ASSERT_EQ(std::remove(absl::StrCat(dir_, "/", name).c_str()), 0);
  spec_.set_type("idx");
  const auto half = CreateDataSet(spec_, Shape({6}), kSeed, Split::kTest);
  ASSERT_THAT(half, IsOk());
  EXPECT_THAT((*half)->num_examples(), Lt(kRows));
}

TEST_F(SplitDataSetTest, WithoutATestHalf_TheErrorSaysHowToHaveOne) {
  spec_.set_test_fraction(0);
  const auto advises = HasSubstr("--set=input.test_fraction=0.1");
  EXPECT_THAT(HasTestHalf(spec_), IsOkAndHolds(false));
  EXPECT_THAT(Open(Split::kTest),
              StatusIs(absl::StatusCode::kNotFound, advises));
  spec_.set_validation_fraction(0.25);
  EXPECT_THAT(Open(Split::kTest), StatusIs(absl::StatusCode::kNotFound,
                                           HasSubstr("--half=validation")));
  spec_.set_type("image_folder");
  EXPECT_THAT(HasTestHalf(spec_), IsOkAndHolds(false));
  spec_.set_type("idx");
  EXPECT_THAT(HasTestHalf(spec_), IsOkAndHolds(false));
  WriteFile(dir_, "t10k-images-idx3-ubyte", "");
  EXPECT_THAT(HasTestHalf(spec_), IsOkAndHolds(true));
  EXPECT_THAT(Open(Split::kTest),
              StatusIs(absl::StatusCode::kNotFound, Not(advises)));
}

}  // namespace
}  // namespace muster
