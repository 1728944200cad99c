#include "worker/input/data_set/open_part.h"

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
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

// How a type reads the files of a half.
struct Reader {
  std::string type;
  std::string ending;
};

// All types that read files by their endings.
std::vector<Reader> Readers() {
  std::vector<Reader> readers;
  for (const std::string& name : DataSetRegistry::Names()) {
    const auto type = DataSetRegistry::Find(name);
    if (!type.ok()) continue;
    for (const std::string& ending : type->names.endings) {
      readers.push_back({name, ending});
    }
  }
  return readers;
}

InputSpec SpecOf(const Reader& reader) {
  InputSpec spec;
  spec.set_type(reader.type);
  spec.set_dir(MakeTempDir());
  return spec;
}

absl::Status Open(const InputSpec& spec, Split split) {
  return CreateDataSet(spec, Shape({1}), /*seed=*/1, split).status();
}

TEST(OpenPartTest, EveryReader_WantsItsSetWhole) {
  EXPECT_GE(Readers().size(), 8);
  for (const Reader& reader : Readers()) {
    const InputSpec spec = SpecOf(reader);
    for (const char* half : {"train", "test"}) {
      WriteFile(spec.dir(), absl::StrCat(half, "-1-of-3", reader.ending), "x");
      WriteFile(spec.dir(), absl::StrCat(half, "-2-of-3", reader.ending), "x");
    }
    EXPECT_THAT(Open(spec, Split::kTrain),
                StatusIs(kRefused, AllOf(HasSubstr("1 of 3 are missing"),
                                         HasSubstr("train-0-of-3"))))
        << reader.ending;
    EXPECT_THAT(Open(spec, Split::kTest),
                StatusIs(kRefused, HasSubstr("test-0-of-3")))
        << reader.ending;
  }
}

TEST(OpenPartTest, EveryReader_RefusesAnEmptyFile) {
  for (const Reader& reader : Readers()) {
    const InputSpec spec = SpecOf(reader);
    WriteFile(spec.dir(), absl::StrCat("train", reader.ending, ".gz"), "");
    EXPECT_THAT(Open(spec, Split::kTrain),
                StatusIs(kRefused, HasSubstr("found an empty file of 1")))
        << reader.ending;
  }
}

TEST(OpenPartTest, AStream_WantsItsSetWholeToo) {
  InputSpec spec = SpecOf({"csv", ".csv"});
  spec.set_stream(true);
  WriteFile(spec.dir(), "train-0-of-2.csv", "x,label\n1,0\n");
  EXPECT_THAT(CreateStream(spec, Shape({1}), /*seed=*/1, {}, /*classes=*/2),
              StatusIs(kRefused, HasSubstr("1 of 2 are missing")));
  spec.set_parts(ANY);
  const auto stream =
      CreateStream(spec, Shape({1}), /*seed=*/1, {}, /*classes=*/2);
  ASSERT_THAT(stream, IsOk());
  EXPECT_THAT((*stream)->Remarks(),
              ElementsAre(HasSubstr("1 of 2 parts; not there")));
}

TEST(OpenPartTest, OnlyFilesAndFoldersOfAHalf_AreOne) {
  const InputSpec spec = SpecOf({"csv", ".csv"});
  WriteFile(spec.dir(), "train.csv", "x");
  WriteFile(spec.dir(), "test.py", "x");
  EXPECT_THAT(HasTestHalf(spec), IsOkAndHolds(false));
  WriteFile(spec.dir(), "test-1-of-2.csv.gz", "");
  EXPECT_THAT(HasTestHalf(spec), IsOkAndHolds(true));
}

}  // namespace
}  // namespace muster
