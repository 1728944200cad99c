#include "ps_server/coordinator/agreed_data.h"

#include <map>
#include <string>

#include "common/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Sections = std::map<std::string, std::string>;

const Sections kData = {
    {"classes", "cat\ndog\n"},   {"columns", "x number [1]\n"},
    {"files", "train.csv 90\n"}, {"label", "class\n"},
    {"map", "crop\n"},           {"rows", "200\n"},
    {"workers", "2\n"}};

Sections With(const std::string& name, const std::string& text) {
  Sections sections = kData;
  sections[name] = text;
  return sections;
}

class AgreedDataTest : public testing::Test {
 protected:
  static RegisterRequest MakeRequest(const Sender& sender,
                                     const Sections& sections) {
    RegisterRequest request;
    *request.mutable_sender() = sender;
    for (const auto& [name, text] : sections) {
      DataSection* const section = request.add_data();
      section->set_name(name);
      section->set_text(text);
      section->set_digest(Fingerprint64(text));
    }
    return request;
  }

  absl::Status Check(const Sender& sender, const Sections& sections) {
    return data_.Check(MakeRequest(sender, sections), IsChief(sender),
                       members_);
  }

  // Registers the sender; returns whether its data replace others.
  bool Admit(const Sender& sender, const Sections& sections) {
    EXPECT_THAT(Check(sender, sections), IsOk());
    members_.FindOrAdd(KeyOf(sender)).Admit(sender, /*has_finished=*/false);
    return data_.Adopt(MakeRequest(sender, sections), IsChief(sender));
  }

  static bool IsChief(const Sender& sender) {
    return sender.task().index() == 0;
  }

  AgreedData data_;
  Members members_;
  const Sender chief_ = MakeSender(0, 100);
  const Sender worker_ = MakeSender(1, 101);
  const Sender other_ = MakeSender(2, 102);
};

TEST_F(AgreedDataTest, ADifferenceIsRefusedWithSectionLineAndBothSides) {
  Admit(chief_, kData);
  EXPECT_THAT(Check(worker_, kData), IsOk());
  EXPECT_THAT(
      Check(worker_, With("classes", "cat\nhorse\n")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("register /job:worker/task:1: its data differ "
                               "from those of /job:worker/task:0: classes: "
                               "line 2 is 'horse' here, 'dog' at "
                               "/job:worker/task:0; "),
                     HasSubstr("give every worker the same data"))));
}

TEST_F(AgreedDataTest, EverySectionButTheFilesHasToBeTheSame) {
  Admit(chief_, kData);
  for (const auto& [name, text] : kData) {
    const absl::Status status = Check(worker_, With(name, "7\n"));
    if (name == "files") {
      EXPECT_THAT(status, IsOk());
    } else {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr(": " + name + ": ")));
    }
  }
}

TEST_F(AgreedDataTest, AnotherNumberOfWorkersIsToldWithBoth) {
  Admit(chief_, kData);
  EXPECT_THAT(Check(worker_, With("workers", "3\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("workers: '3' here, '2' at "
                                 "/job:worker/task:0; the rows are divided by "
                                 "that number")));
}

TEST_F(AgreedDataTest, TheFirstWorkersStandUntilTheChiefs) {
  EXPECT_FALSE(Admit(worker_, kData));
  const Sections others = With("rows", "150\n");
  EXPECT_THAT(Check(other_, others),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'200' at /job:worker/task:1")));
  EXPECT_TRUE(Admit(chief_, others));
  EXPECT_THAT(Check(other_, others), IsOk());
  EXPECT_THAT(Check(worker_, kData),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'150' at /job:worker/task:0")));
}

TEST_F(AgreedDataTest, TheChiefTakesOverWhatAWorkerHasBroughtAlike) {
  Admit(worker_, kData);
  EXPECT_FALSE(Admit(chief_, kData));
  EXPECT_THAT(Check(other_, With("rows", "150\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("/job:worker/task:0")));
}

TEST_F(AgreedDataTest, AWorkerReplacesItsOwnWhileNobodyElseIsThere) {
  Admit(worker_, kData);
  EXPECT_TRUE(Admit(MakeSender(1, 201), With("rows", "150\n")));
  Admit(other_, With("rows", "150\n"));
  EXPECT_THAT(Check(MakeSender(1, 301), kData),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(AgreedDataTest, AnotherStartOfTheChiefReplacesItsData) {
  Admit(chief_, kData);
  Admit(worker_, kData);
  EXPECT_TRUE(Admit(MakeSender(0, 200), With("rows", "250\n")));
  EXPECT_THAT(Check(worker_, kData),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("start all workers anew if the data have "
                                 "changed")));
}

TEST_F(AgreedDataTest, OtherFilesAreSaidOnceATask) {
  Admit(chief_, kData);
  EXPECT_THAT(data_.TakeWarnings(), IsEmpty());
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(Admit(worker_, With("files", "train-1.csv 90\n")));
  }
  EXPECT_THAT(data_.TakeWarnings(),
              ElementsAre("/job:worker/task:1 reads other files than "
                          "/job:worker/task:0, which hold as many rows of the "
                          "same kind: files: 'train-1.csv 90' here, "
                          "'train.csv 90' at /job:worker/task:0"));
  EXPECT_THAT(data_.TakeLines(), IsEmpty());
}

TEST_F(AgreedDataTest, ATaskWithoutDataIsNotComparedAndSaidOnce) {
  Admit(other_, {});
  EXPECT_THAT(data_.TakeLines(), IsEmpty()) << "there is nothing to compare";
  Admit(chief_, kData);
  for (int i = 0; i < 2; ++i) Admit(worker_, {});
  Admit(other_, {});
  EXPECT_THAT(data_.TakeLines(),
              ElementsAre("/job:worker/task:2 does not say what its data are: "
                          "they are not compared with those of "
                          "/job:worker/task:0",
                          HasSubstr("/job:worker/task:1 does not say")));
}

TEST_F(AgreedDataTest, ATaskWithoutDataLeavesWhatStands) {
  Admit(worker_, kData);
  EXPECT_FALSE(Admit(chief_, {}));
  EXPECT_THAT(Check(other_, With("rows", "150\n")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// A program's.
const Sections kWorkersAlone = {{"workers", "2\n"}};

TEST_F(AgreedDataTest, AProgramsDataAreNotComparedAndSaid) {
  Admit(chief_, kWorkersAlone);
  EXPECT_THAT(data_.TakeLines(), IsEmpty());
  EXPECT_FALSE(Admit(worker_, kData));
  EXPECT_THAT(data_.TakeLines(),
              ElementsAre("/job:worker/task:0 does not say what its data are: "
                          "they are not compared with those of "
                          "/job:worker/task:1"));
  EXPECT_THAT(Check(chief_, {{"workers", "2\n"}}), IsOk());
}

TEST_F(AgreedDataTest, BesideAProgramAllOthersAreCompared) {
  Admit(chief_, kWorkersAlone);
  Admit(worker_, kData);
  EXPECT_THAT(Check(other_, With("rows", "150\n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("those of /job:worker/task:1: rows")));
  EXPECT_THAT(Check(other_, {{"workers", "3\n"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("those of /job:worker/task:0: workers")));
}

TEST_F(AgreedDataTest, RowsThatAreNotCountedAreNotCompared) {
  Sections stream = kData;
  stream.erase("rows");
  Admit(chief_, stream);
  EXPECT_THAT(Check(worker_, With("rows", "150\n")), IsOk());
  EXPECT_THAT(Check(worker_, stream), IsOk());
}

TEST_F(AgreedDataTest, TheNextJobMayHaveOtherData) {
  Admit(chief_, kData);
  Admit(worker_, kData);
  data_.Clear();
  EXPECT_FALSE(Admit(worker_, With("rows", "150\n")));
  EXPECT_THAT(Check(other_, kData),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(AgreedDataTest, TooManySectionsAreRefused) {
  Sections many;
  for (int i = 0; i < AgreedData::kMaxSections; ++i) {
    many[std::to_string(i)] = "a\n";
  }
  EXPECT_THAT(Check(chief_, many), IsOk());
  many["one more"] = "a\n";
  EXPECT_THAT(Check(chief_, many), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("found 17 in ")));
}

TEST_F(AgreedDataTest, TooLargeSectionsAreRefused) {
  const std::string half(AgreedData::kMaxBytes / 2, 'a');
  EXPECT_THAT(Check(chief_, With("map", half)), IsOk());
  for (const Sections& sections :
       {With("map", half + half), With(half + half, "")}) {
    EXPECT_THAT(Check(chief_, sections),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("at most 16 sections of data in 131072 "
                                   "bytes")));
  }
}

}  // namespace
}  // namespace muster
