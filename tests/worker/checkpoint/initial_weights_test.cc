#include "worker/checkpoint/initial_weights.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/safetensors_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFile[] = "root/files/w.safetensors";

class InitialWeightsTest : public ::testing::Test {
 protected:
  InitialWeightsTest() {
    EXPECT_THAT(fs_.CreateFolder("root/files"), IsOk());
    options_.path = kFile;
  }
  // A file of F32 vectors: name and number of elements; element i is i + 1.
  void Write(const std::vector<std::pair<std::string, int64_t>>& tensors) {
    std::vector<SafetensorsEntry> entries;
    for (const auto& [name, size] : tensors) {
      entries.push_back({name, FLOAT32, Shape({size}), 0, 0});
    }
    auto writer = SafetensorsWriter::Create(&fs_, kFile, entries);
    ASSERT_THAT(writer, IsOk());
    for (const SafetensorsEntry& entry : (*writer)->entries()) {
      for (int64_t i = 0; i < entry.shape.num_elements(); ++i) {
        const float value = static_cast<float>(i + 1);
        ASSERT_THAT((*writer)->Append(
                        {reinterpret_cast<const char*>(&value), sizeof(value)}),
                    IsOk());
      }
    }
    ASSERT_THAT((*writer)->Finish(), IsOk());
  }
  absl::StatusOr<std::unique_ptr<InitialWeights>> Open() {
    return InitialWeights::Open(&fs_, options_, parameters_);
  }
  void ExpectRefused(const std::string& first, const std::string& second = "") {
    EXPECT_THAT(Open(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("--init_from="), HasSubstr(kFile),
                               HasSubstr(first), HasSubstr(second))));
  }
  std::vector<float> Read(const InitialWeights& weights, size_t parameter,
                          size_t size) {
    std::vector<float> values(size, -7);
    EXPECT_THAT(weights.Read(parameter, absl::MakeSpan(values)), IsOk());
    return values;
  }

  FakeFileSystem fs_{"root"};
  InitialWeights::Options options_;
  std::vector<TensorDef> parameters_ = {MakeTensor("a/weights", {3}),
                                        MakeTensor("a/bias", {2})};
};

TEST_F(InitialWeightsTest, ReadsParametersByName) {
  Write({{"a/bias", 2}, {"a/weights", 3}});
  const auto weights = Open();
  ASSERT_THAT(weights, IsOk());
  EXPECT_EQ((*weights)->num_tensors(), 2);
  EXPECT_THAT((*weights)->remarks(), IsEmpty());
  EXPECT_THAT(Read(**weights, 0, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(Read(**weights, 1, 2), ElementsAre(1, 2));
}

TEST_F(InitialWeightsTest, RenamesAndLeavesOut) {
  Write({{"m.a.bias", 2}, {"m.a.weight", 3}, {"m.steps", 1}});
  options_.name_map = {"m.*.weight=*/weights", "m.*.bias=*/bias", "m.*="};
  const auto weights = Open();
  ASSERT_THAT(weights, IsOk());
  EXPECT_THAT(Read(**weights, 0, 3), ElementsAre(1, 2, 3));
}

TEST_F(InitialWeightsTest, RefusesMissingAndExtraTensorsByName) {
  Write({{"a/weights", 3}, {"other", 3}});
  ExpectRefused("lacks 1 parameters of the model: 'a/bias'", "'other'");
  ExpectRefused("--init_from_partial", "--init_from_map");
}

TEST_F(InitialWeightsTest, ListsWhatAPartialFileLeavesToTheSeed) {
  Write({{"a/weights", 3}, {"other", 3}});
  options_.partial = true;
  const auto weights = Open();
  ASSERT_THAT(weights, IsOk());
  EXPECT_THAT((*weights)->remarks(),
              ElementsAre(HasSubstr("by seed: a/bias"),
                          HasSubstr("passed over: 'other'")));
  EXPECT_EQ((*weights)->num_tensors(), 1);
  EXPECT_THAT(Read(**weights, 1, 2), Each(-7));  // Left as it was.
}

TEST_F(InitialWeightsTest, RefusesAPartialFileWithNothingThatFits) {
  Write({{"other", 3}});
  options_.partial = true;
  ExpectRefused("none of the model's parameters", "'other'");
}

TEST_F(InitialWeightsTest, RefusesAnotherShapeEvenIfPartial) {
  Write({{"a/bias", 2}, {"a/weights", 4}});
  options_.partial = true;
  ExpectRefused("'a/weights' wants shape [3] of F32", "has [4] of F32");
}

TEST_F(InitialWeightsTest, RefusesTwoTensorsForOneParameter) {
  Write({{"a/bias", 2}, {"a/weights", 3}, {"b/weights", 3}});
  options_.name_map = {"b/*=a/*"};
  ExpectRefused("'a/weights' and 'b/weights' are to be 'a/weights'");
}

TEST_F(InitialWeightsTest, RefusesOtherDtypesAndValuesThatAreNotFinite) {
  const auto write = [this](const std::string& dtype, const std::string& data) {
    const std::string json =
        absl::StrCat(R"({"a/bias":{"dtype":")", dtype,
                     R"(","shape":[2],"data_offsets":[0,8]}})");
    std::string prefix(8, '\0');
    prefix[0] = static_cast<char>(json.size());
    fs_.SetContents(kFile, prefix + json + data);
  };
  options_.partial = true;
  write("I32", std::string(8, '\0'));
  ExpectRefused("parameter 'a/bias' wants shape [2] of F32", "[2] of I32");
  write("F32", std::string("\0\0\0\0\0\0\x80\x7f", 8));
  ExpectRefused("'a/bias': element 1 is inf");
}

TEST_F(InitialWeightsTest, RefusesAHostileOrMissingFile) {
  ExpectRefused("not there");
  fs_.SetContents(kFile, std::string(8, '\xff') + "{}");
  ExpectRefused("a header of 18446744073709551615 bytes");
  fs_.SetContents(kFile, "short");
  ExpectRefused("5 bytes are too few");
}

TEST_F(InitialWeightsTest, ACheckpointInTrainDirWinsAndThatIsSaid) {
  FakeFileSystem train("train");
  ASSERT_THAT(SaveExample(&train, "train", 40), IsOk());
  ReportedLines reported;
  // The file is not even opened.
  const auto weights = InitialWeights::OpenForRun(&train, options_, parameters_,
                                                  "train", reported.reporter());
  ASSERT_THAT(weights, IsOk());
  EXPECT_EQ(*weights, nullptr);
  EXPECT_THAT(reported.lines(), ElementsAre(AllOf(HasSubstr("I --init_from="),
                                                  HasSubstr("is not used"),
                                                  HasSubstr("step 40"))));
}

}  // namespace
}  // namespace muster
