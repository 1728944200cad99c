// CheckpointWriter and CheckpointReader together: what is saved is found
// again, and whatever goes wrong, an earlier checkpoint is.
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/stopped_error.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kDir[] = "train";

class CheckpointTest : public ::testing::Test {
 protected:
  absl::Status Save(int64_t step, int keep = 5) {
    return SaveExample(&fs_, kDir, step, keep);
  }
  // The step of the newest whole checkpoint, or -1; its bytes are checked.
  int64_t NewestStep() {
    const auto newest = CheckpointReader::OpenNewest(&fs_, kDir);
    if (!newest.ok()) return -1;
    const int64_t step = newest->reader->manifest().global_step();
    EXPECT_TRUE(IsExample(*newest->reader, step));
    return step;
  }
  std::string FileOf(int64_t step, const std::string& file) {
    return absl::StrCat(kDir, "/", CheckpointName(step), "/", file);
  }
  void Damage(int64_t step, const std::string& file, size_t byte) {
    std::string contents = fs_.Contents(FileOf(step, file));
    contents[byte] = static_cast<char>(contents[byte] ^ 0x10);
    fs_.SetContents(FileOf(step, file), contents);
  }
  std::vector<std::string> Names() { return *fs_.List(kDir); }

  FakeFileSystem fs_{kDir};
};

TEST_F(CheckpointTest, FindsWhatWasSaved) {
  ASSERT_THAT(Save(100), IsOk());
  const auto newest = CheckpointReader::OpenNewest(&fs_, kDir);
  ASSERT_THAT(newest, IsOk());
  EXPECT_THAT(newest->warnings, IsEmpty());
  EXPECT_TRUE(IsExample(*newest->reader, 100));
  const CheckpointManifest& manifest = newest->reader->manifest();
  EXPECT_EQ(manifest.parameters(0).name(), "dense/weights");
  EXPECT_EQ(manifest.fingerprint(), 0x1234567890abcdef);
  EXPECT_EQ(manifest.workers(0).position().rows(), 100);
  EXPECT_THAT(Names(), ElementsAre("ckpt-000000000100"));
}

TEST_F(CheckpointTest, HasACountOfUpdatesForEachBlock) {
  ASSERT_THAT(Save(1), IsOk());
  const auto newest = CheckpointReader::OpenNewest(&fs_, kDir);
  ASSERT_THAT(newest, IsOk());
  std::vector<std::string> slots;
  for (const CheckpointPiece& piece : newest->reader->pieces()) {
    if (piece.slot == "t") {
      EXPECT_EQ(piece.dtype, INT64);
      slots.push_back(
          absl::StrCat(piece.parameter.name(), ":", piece.elements));
    }
  }
  EXPECT_THAT(slots, ElementsAre("conv/weights:2", "dense/weights:1"));
}

TEST_F(CheckpointTest, ReadsPartsOfTensors) {
  ASSERT_THAT(Save(1), IsOk());
  const auto newest = CheckpointReader::OpenNewest(&fs_, kDir);
  ASSERT_THAT(newest, IsOk());
  const CheckpointPiece* moments = nullptr;
  for (const CheckpointPiece& piece : newest->reader->pieces()) {
    if (piece.parameter.name() == "conv/weights" && piece.slot == "m") {
      moments = &piece;
    }
  }
  ASSERT_NE(moments, nullptr);
  std::string found(8, '\0');
  ASSERT_THAT(newest->reader->Read("conv/weights", "m", 65535, 2, found.data()),
              IsOk());
  EXPECT_EQ(found, ExampleBytes(*moments, 1).substr(65535 * 4));
  EXPECT_THAT(newest->reader->Read("bn/mean", "m", 0, 1, found.data()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("bn/mean/m")));
}

TEST_F(CheckpointTest, KeepsTheNewest) {
  for (int64_t step = 1; step <= 5; ++step) {
    ASSERT_THAT(Save(step, /*keep=*/3), IsOk());
  }
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(3), CheckpointName(4),
                                   CheckpointName(5)));
  ASSERT_THAT(Save(6, /*keep=*/0), IsOk());
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(5), CheckpointName(6)));
}

TEST_F(CheckpointTest, ReplacesACheckpointOfTheSameStep) {
  ASSERT_THAT(Save(7), IsOk());
  Damage(7, "slots.safetensors", 5000);
  EXPECT_EQ(NewestStep(), -1);
  ASSERT_THAT(Save(7), IsOk());
  EXPECT_EQ(NewestStep(), 7);
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(7)));
}

TEST_F(CheckpointTest, SaysThatThereIsNone) {
  EXPECT_THAT(CheckpointReader::OpenNewest(&fs_, kDir),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'train'")));
}

TEST_F(CheckpointTest, FallsBackLoudlyFromADamagedTensor) {
  ASSERT_THAT(Save(1), IsOk());
  ASSERT_THAT(Save(2), IsOk());
  const std::string path = FileOf(2, "parameters.safetensors");
  Damage(2, "parameters.safetensors", fs_.Contents(path).size() - 1);
  const auto newest = CheckpointReader::OpenNewest(&fs_, kDir);
  ASSERT_THAT(newest, IsOk());
  EXPECT_TRUE(IsExample(*newest->reader, 1));
  EXPECT_THAT(newest->warnings,
              ElementsAre(AllOf(HasSubstr(CheckpointName(2)),
                                HasSubstr("parameters.safetensors"),
                                HasSubstr("'dense/weights' is damaged"))));
}

TEST_F(CheckpointTest, NamesAllWhenNoneIsWhole) {
  ASSERT_THAT(Save(1), IsOk());
  ASSERT_THAT(Save(2), IsOk());
  Damage(1, "manifest.textproto", 100);
  Damage(2, "slots.safetensors", 1000);
  EXPECT_THAT(CheckpointReader::OpenNewest(&fs_, kDir),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(CheckpointName(1)),
                             HasSubstr(CheckpointName(2)))));
}

TEST_F(CheckpointTest, FallsBackFromTruncatedAndMissingFiles) {
  ASSERT_THAT(Save(1), IsOk());
  for (const std::string file :
       {"parameters.safetensors", "slots.safetensors", "manifest.textproto"}) {
    ASSERT_THAT(Save(2), IsOk());
    const std::string contents = fs_.Contents(FileOf(2, file));
    for (const size_t size :
         {size_t{0}, size_t{7}, contents.size() / 2, contents.size() - 2}) {
      fs_.SetContents(FileOf(2, file), contents.substr(0, size));
      EXPECT_EQ(NewestStep(), 1) << file << " of " << size << " bytes";
    }
    fs_.SetContents(FileOf(2, file), contents + "x");
    EXPECT_EQ(NewestStep(), 1) << file << " with a byte more";
    ASSERT_THAT(fs_.Remove(FileOf(2, file)), IsOk());
    EXPECT_EQ(NewestStep(), 1) << "without " << file;
  }
}

TEST_F(CheckpointTest, RefusesParametersThatNoFileCanHold) {
  const auto refuses = [this](const TensorDef& parameter) {
    EXPECT_THAT(CheckpointWriter::Create({&fs_, kDir, 1, {}}, {parameter}, {}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << parameter.DebugString();
  };
  refuses(MakeTensor("", {1}));
  refuses(MakeTensor("a b", {1}));
  refuses(MakeTensor(std::string(256, 'a'), {1}));
  refuses(MakeTensor("a", {0}));
  refuses(MakeTensor("a", {-1}));
  refuses(MakeTensor("a", {int64_t{1} << 40, int64_t{1} << 40}));
  TensorDef untyped = MakeTensor("a", {1});
  untyped.clear_dtype();
  refuses(untyped);
  EXPECT_THAT(CheckpointWriter::Create(
                  {&fs_, kDir, 1, {}},
                  {MakeTensor("a", {1}), MakeTensor("a", {2})}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a'")));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(CheckpointTest, WantsAllBytesBeforeItCommits) {
  {
    const auto writer = CheckpointWriter::Create(
        {&fs_, kDir, 1, {}}, ExampleParameters(), ExampleSlots());
    ASSERT_THAT(writer, IsOk());
    EXPECT_THAT((*writer)->Commit(ExampleManifest(1)),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(CheckpointTest, TakesBytesInAnyPieces) {
  {
    const auto writer = CheckpointWriter::Create(
        {&fs_, kDir, 9, {}}, ExampleParameters(), ExampleSlots());
    ASSERT_THAT(writer, IsOk());
    std::string all;
    for (const CheckpointPiece& piece : (*writer)->pieces()) {
      all += ExampleBytes(piece, 9);
    }
    for (size_t i = 0; i < all.size(); i += 10007) {
      ASSERT_THAT((*writer)->Append(absl::string_view(all).substr(i, 10007)),
                  IsOk());
    }
    ASSERT_THAT((*writer)->Commit(ExampleManifest(9)), IsOk());
  }
  EXPECT_EQ(NewestStep(), 9);
}

TEST(CheckpointOnDiskTest, SavesReplacesAndKeeps) {
  PosixFileSystem fs;
  const std::string dir =
      absl::StrCat(::testing::TempDir(), "/checkpoint_test_", getpid());
  ASSERT_THAT(fs.CreateFolder(dir), IsOk());
  for (const int64_t step : {0, 5, 5, 10, 15}) {
    ASSERT_THAT(SaveExample(&fs, dir, step, /*keep=*/2), IsOk());
  }
  const auto newest = CheckpointReader::OpenNewest(&fs, dir);
  ASSERT_THAT(newest, IsOk());
  EXPECT_TRUE(IsExample(*newest->reader, 15));
  EXPECT_THAT(*fs.List(dir),
              ElementsAre(CheckpointName(10), CheckpointName(15)));
  // A stop is no damage: the older one is not taken in its place.
  int reads = 0;
  PosixFileSystem stopping([&reads] { return ++reads < 5; });
  EXPECT_TRUE(IsStopped(CheckpointReader::OpenNewest(&stopping, dir).status()));
  EXPECT_EQ(reads, 5);
  for (const int64_t step : {10, 15}) {
    EXPECT_THAT(fs.Remove(absl::StrCat(dir, "/", CheckpointName(step))),
                IsOk());
  }
  EXPECT_THAT(fs.Remove(dir), IsOk());
}

}  // namespace
}  // namespace muster
