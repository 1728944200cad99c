#include "worker/checkpoint/initial_weights.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/checkpoint/manifest.h"
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

// A checkpoint of ExampleParameters, all of whose values are its step.
absl::Status SaveStep(FileSystem* file_system, int64_t step) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointWriter> writer,
                   CheckpointWriter::Create({file_system, "run", step, {5, 0}},
                                            ExampleParameters(), {}));
  const auto value = static_cast<float>(step);
  for (const CheckpointPiece& piece : writer->pieces()) {
    std::string bytes(static_cast<size_t>(piece.size_bytes), '\0');
    for (size_t i = 0; piece.slot.empty() && i < bytes.size(); i += 4) {
      std::memcpy(&bytes[i], &value, sizeof(value));
    }
    RETURN_IF_ERROR(writer->Append(bytes));
  }
  return writer->Commit(ExampleManifest(step)).status();
}

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
  options_.name_map = {R"(m\.(.*)\.weight=\1/weights)",
                       R"(m\.(.*)\.bias=\1/bias)", R"(m\.steps=)"};
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

// All of the flags --init_from_map of a message, as a shell reads them.
std::vector<std::string> MapOf(const absl::Status& status) {
  std::vector<std::string> rules;
  const std::vector<std::string> parts =
      absl::StrSplit(status.message(), "--init_from_map='");
  for (size_t i = 1; i < parts.size(); ++i) {
    rules.push_back(parts[i].substr(0, parts[i].find('\'')));
  }
  return rules;
}

TEST_F(InitialWeightsTest,
       AHeadOfAnotherSizeIsRefusedWithTheMapThatBeginsAnew) {
  Write({{"a/bias", 2}, {"a/weights", 3}, {"fc/bias", 4}, {"fc/weights", 8}});
  parameters_.push_back(MakeTensor("fc/weights", {6}));
  parameters_.push_back(MakeTensor("fc/bias", {3}));
  const absl::Status refused = Open().status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("'fc/weights' wants shape [6]"),
                                      HasSubstr("'fc/bias' wants shape [3]"))));
  options_.name_map = MapOf(refused);
  EXPECT_THAT(options_.name_map, ElementsAre("fc/.*="));
  const auto weights = Open();
  ASSERT_THAT(weights, IsOk());
  EXPECT_EQ((*weights)->num_tensors(), 2);
  EXPECT_THAT((*weights)->remarks(),
              ElementsAre(AllOf(HasSubstr("left out"), HasSubstr("by seed: "),
                                HasSubstr("fc/weights")),
                          HasSubstr("fc/bias")));
}

TEST_F(InitialWeightsTest, TheMapThatBeginsAnewKeepsTheOneThatWasGiven) {
  Write({{"m.a.bias", 2}, {"m.a.weights", 3}, {"m.fc.weights", 8}});
  parameters_.push_back(MakeTensor("fc/weights", {6}));
  options_.name_map = {R"(m\.(.*)\.(.*)=\1/\2)"};
  options_.name_map = MapOf(Open().status());
  EXPECT_EQ(options_.name_map.size(), 2u);
  const auto weights = Open();
  ASSERT_THAT(weights, IsOk());
  EXPECT_EQ((*weights)->num_tensors(), 2);
}

TEST_F(InitialWeightsTest, ALayerThatIsLeftOutIsNoLicenseToLackAnother) {
  Write({{"a/bias", 2}, {"fc/weights", 8}});
  parameters_.push_back(MakeTensor("fc/weights", {6}));
  options_.name_map = {"fc/.*="};
  ExpectRefused("lacks 1 parameters of the model: 'a/weights'");
}

TEST_F(InitialWeightsTest, AModelThatIsUsedAsItIsNeedsWhatTheMapLeavesOut) {
  Write({{"a/bias", 2}, {"a/weights", 3}});
  options_.whole = true;
  EXPECT_THAT(Open(), IsOk());
  options_.name_map = {"a/bias="};
  ExpectRefused("leaves out 'a/bias'", "needs all its parameters");
}

TEST_F(InitialWeightsTest, RefusesARuleThatMatchesNothing) {
  Write({{"a/bias", 2}, {"a/weights", 3}});
  options_.name_map = {"a/wieghts="};
  ExpectRefused("--init_from_map 'a/wieghts' matches no", "'a/weights'?");
}

TEST_F(InitialWeightsTest, RefusesTwoTensorsForOneParameter) {
  Write({{"a/bias", 2}, {"a/weights", 3}, {"b/weights", 3}});
  options_.name_map = {R"(b/(.*)=a/\1)"};
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

TEST_F(InitialWeightsTest, ATensorOfAnUnreadKindRefusesOnlyWhatNeedsIt) {
  for (const char* dtype : {"F8_E4M3", "F4", "X9"}) {
    const std::string json = absl::StrCat(
        R"({"a/bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)",
        R"("a/weights":{"dtype":")", dtype,
        R"(","shape":[3],"data_offsets":[8,11]}})");
    std::string prefix(8, '\0');
    prefix[0] = static_cast<char>(json.size());
    fs_.SetContents(kFile, prefix + json + std::string(11, '\0'));
    options_.name_map.clear();
    ExpectRefused("'a/weights' wants shape [3] of F32",
                  absl::StrCat("has [3] of ", dtype));
    options_.name_map = {"a/weights="};
    const auto weights = Open();
    ASSERT_THAT(weights, IsOk()) << dtype;
    EXPECT_THAT(Read(**weights, 0, 3), Each(-7));
    EXPECT_THAT(Read(**weights, 1, 2), Each(0));
  }
}

TEST_F(InitialWeightsTest, RefusesAHostileOrMissingFile) {
  ExpectRefused("not there");
  fs_.SetContents(kFile, std::string(8, '\xff') + "{}");
  ExpectRefused("a header of 18446744073709551615 bytes");
  fs_.SetContents(kFile, "short");
  ExpectRefused("5 bytes are too few");
}

// Of a folder of a training, whose parameters are ExampleParameters.
class InitialFolderTest : public ::testing::Test {
 protected:
  InitialFolderTest() { options_.path = "run"; }

  absl::StatusOr<std::unique_ptr<InitialWeights>> Open() {
    return InitialWeights::Open(&run_, options_, ExampleParameters());
  }

  FakeFileSystem run_{"run"};
  InitialWeights::Options options_;
};

TEST_F(InitialFolderTest, TakesTheNewestCheckpointAndSaysWhich) {
  ASSERT_THAT(SaveStep(&run_, 7), IsOk());
  ASSERT_THAT(SaveStep(&run_, 40), IsOk());
  const auto weights = Open();
  ASSERT_THAT(weights, IsOk());
  EXPECT_EQ((*weights)->source(), "run/ckpt-000000000040");
  EXPECT_THAT((*weights)->remarks(),
              ElementsAre("takes run/ckpt-000000000040"));
  EXPECT_EQ((*weights)->num_tensors(), 3);
  std::vector<float> values(6);
  ASSERT_THAT((*weights)->Read(0, absl::MakeSpan(values)), IsOk());
  EXPECT_THAT(values, Each(40));
}

TEST_F(InitialFolderTest, TakesTheCheckpointThatItIs) {
  ASSERT_THAT(SaveStep(&run_, 7), IsOk());
  ASSERT_THAT(SaveStep(&run_, 40), IsOk());
  options_.path = "run/ckpt-000000000007";
  const auto weights = Open();
  ASSERT_THAT(weights, IsOk());
  std::vector<float> values(6);
  ASSERT_THAT((*weights)->Read(0, absl::MakeSpan(values)), IsOk());
  EXPECT_THAT(values, Each(7));
}

TEST_F(InitialFolderTest, ADamagedNewestCheckpointIsSaid) {
  ASSERT_THAT(SaveStep(&run_, 7), IsOk());
  ASSERT_THAT(SaveStep(&run_, 40), IsOk());
  run_.SetContents("run/ckpt-000000000040/parameters.safetensors", "");
  const auto weights = Open();
  ASSERT_THAT(weights, IsOk());
  EXPECT_THAT((*weights)->remarks(),
              ElementsAre(HasSubstr("000040' is not usable"),
                          "takes run/ckpt-000000000007"));
}

TEST_F(InitialFolderTest, ANewerFormatIsRefusedByNameAndNotFallenBackFrom) {
  ASSERT_THAT(SaveStep(&run_, 7), IsOk());
  ASSERT_THAT(SaveStep(&run_, 40), IsOk());
  const std::string path = "run/ckpt-000000000040/manifest.textproto";
  run_.SetContents(path, *FormatManifest(ExampleManifest(40), 999));
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("--init_from=run"),
                                     HasSubstr("000040"), HasSubstr("999"))));
}

TEST_F(InitialFolderTest, WithoutACheckpointItSaysWhatIsThere) {
  ASSERT_THAT(run_.CreateFolder("run/weights"), IsOk());
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("--init_from=run: "),
                                     HasSubstr("found weights"))));
  options_.path = "run/weights";
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("found nothing")));
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
