#include "worker/input/data_set/numbered_parts.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

class NumberedPartsTest : public testing::Test {
 protected:
  // Writes a file, and adds its path.
  void Add(const std::string& name, const std::string& content = "x") {
    paths_.push_back(WriteFile(dir_, name, content));
  }

  absl::StatusOr<ChosenParts> Choose(PartsPolicy policy = WHOLE) {
    return ChooseParts(paths_, policy);
  }

  const std::string dir_ = MakeTempDir();
  std::vector<std::string> paths_;
};

TEST(FindPartNumberTest, FindsItBesideAnEndingAndGz) {
  const auto part = FindPartNumber("d/train-00001-of-00004.csv.gz");
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->before, "d/train-");
  EXPECT_EQ(part->index_text, "00001");
  EXPECT_EQ(part->index, 1);
  EXPECT_EQ(part->count, 4);
  EXPECT_EQ(part->after, ".csv");
  EXPECT_EQ(FindPartNumber("d/train.tfrecord-3-of-8")->before,
            "d/train.tfrecord-");
  EXPECT_EQ(FindPartNumber("train_3_of_8_labels.npy")->after, "_labels.npy");
}

TEST(FindPartNumberTest, FindsNoneInOtherNames) {
  for (const char* path :
       {"train.csv", "1-of-2/train.csv", "train-1-of-many.csv",
        "train-one-of-2.csv", "train-1-of-2nd.csv", "-of-", "1-of-",
        "train-1-of-99999999999.csv"}) {
    EXPECT_FALSE(FindPartNumber(path).has_value()) << path;
  }
}

TEST_F(NumberedPartsTest, WholeSet_IsReadInItsOrder) {
  for (int i = 0; i < 3; ++i) Add(absl::StrCat("train-0000", i, "-of-00003"));
  const auto parts = Choose();
  ASSERT_THAT(parts, IsOk());
  EXPECT_EQ(parts->paths, paths_);
  EXPECT_THAT(parts->remarks, IsEmpty());
}

TEST_F(NumberedPartsTest, SetCountedFromOne_IsWhole) {
  for (int i = 1; i <= 3; ++i) Add(absl::StrCat("train-", i, "-of-3.csv"));
  EXPECT_THAT(Choose(), IsOk());
  Add("train-0-of-3.csv");
  EXPECT_THAT(Choose(), StatusIs(kRefused, HasSubstr("from 0 to 2, of 3")));
}

TEST_F(NumberedPartsTest, MissingParts_AreNamed) {
  for (const int i : {0, 2, 3, 7}) {
    Add(absl::StrCat("train-0000", i, "-of-00008.csv"));
  }
  EXPECT_THAT(Choose(),
              StatusIs(kRefused, AllOf(HasSubstr("4 of 8 are missing: "),
                                       HasSubstr("train-00001-of-00008.csv'"),
                                       HasSubstr("train-00006-of-00008.csv'"),
                                       Not(HasSubstr("train-00002-of")),
                                       HasSubstr("--set=input.parts=ANY"))));
}

TEST_F(NumberedPartsTest, ManyMissingParts_AreCounted) {
  Add("train-0-of-2000000000.csv");
  EXPECT_THAT(Choose(),
              StatusIs(kRefused, AllOf(HasSubstr("1999999999 of 2000000000"),
                                       HasSubstr("and 1999999989 more"))));
}

TEST_F(NumberedPartsTest, EachFamilyOfNames_IsASetOfItsOwn) {
  for (const char* what : {"images", "labels"}) {
    for (int i = 0; i < 2; ++i) {
      Add(absl::StrCat("train-", i, "-of-2-", what, ".npy"));
    }
  }
  EXPECT_THAT(Choose(), IsOk());
  paths_.pop_back();
  EXPECT_THAT(Choose(), StatusIs(kRefused, HasSubstr("1 of 2 are missing: ")));
}

TEST_F(NumberedPartsTest, TwoCounts_AreRefusedWithBoth) {
  Add("train-0-of-1.csv");
  Add("train-0-of-2.csv");
  for (const PartsPolicy policy : {WHOLE, ANY}) {
    EXPECT_THAT(Choose(policy),
                StatusIs(kRefused, AllOf(HasSubstr("train-0-of-1.csv'"),
                                         HasSubstr("train-0-of-2.csv'"))));
  }
}

TEST_F(NumberedPartsTest, PartsBeyondTheCount_AreRefused) {
  Add("train-0-of-2.csv");
  Add("train-1-of-2.csv");
  Add("train-3-of-2.csv");
  for (const PartsPolicy policy : {WHOLE, ANY}) {
    EXPECT_THAT(Choose(policy),
                StatusIs(kRefused, HasSubstr("train-3-of-2.csv': wanted")));
  }
  paths_ = {};
  Add("train-0-of-0.csv");
  EXPECT_THAT(Choose(), StatusIs(kRefused));
}

TEST_F(NumberedPartsTest, TheSamePartTwice_IsRefused) {
  Add("train-0-of-1.csv");
  Add("train-00-of-1.csv");
  EXPECT_THAT(Choose(), StatusIs(kRefused, HasSubstr("are the same part")));
}

TEST_F(NumberedPartsTest, PlainFile_IsReadInPlaceOfItsGz) {
  Add("train-0-of-1.csv");
  Add("train-0-of-1.csv.gz");
  Add("train-b.csv.gz");
  const auto parts = Choose();
  ASSERT_THAT(parts, IsOk());
  EXPECT_THAT(parts->paths, ElementsAre(paths_[0], paths_[2]));
  EXPECT_THAT(parts->remarks,
              ElementsAre(AllOf(HasSubstr("passed over"),
                                HasSubstr("train-0-of-1.csv.gz'"))));
}

TEST_F(NumberedPartsTest, EmptyFile_IsRefusedByName) {
  Add("train-a.csv");
  Add("train-b.csv", "");
  EXPECT_THAT(Choose(),
              StatusIs(kRefused, AllOf(HasSubstr("found an empty file of 2"),
                                       HasSubstr("train-b.csv'"),
                                       HasSubstr("input.parts=ANY"))));
}

TEST_F(NumberedPartsTest, Any_ReadsAndCountsWhatIsThere) {
  for (int i = 0; i < 4; ++i) {
    Add(absl::StrCat("train-", i, "-of-8.csv"), i == 2 ? "" : "x");
  }
  const auto parts = Choose(ANY);
  ASSERT_THAT(parts, IsOk());
  EXPECT_THAT(parts->paths, ElementsAre(paths_[0], paths_[1], paths_[3]));
  EXPECT_THAT(parts->remarks,
              ElementsAre(HasSubstr("passed over an empty file of 4"),
                          AllOf(HasSubstr("3 of 8 parts"),
                                HasSubstr("train-2-of-8.csv'"))));
  paths_ = {paths_[2]};
  EXPECT_THAT(Choose(ANY),
              StatusIs(kRefused, HasSubstr("found an empty file of 1")));
}

}  // namespace
}  // namespace muster
