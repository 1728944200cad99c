// Bit rot (T10), and checkpoints that are cut short, older, newer or of another
// model (T11).
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/manifest.h"
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
using ::testing::SizeIs;

constexpr char kDir[] = "train";
constexpr uint64_t kSeed = 20261121;
constexpr int kRandomBits = 1000;

class CheckpointDamageTest : public ::testing::TestWithParam<std::string> {
 protected:
  CheckpointDamageTest() {
    EXPECT_THAT(SaveSmall(&fs_, kDir, 1, Retention(), 1), IsOk());
    EXPECT_THAT(SaveSmall(&fs_, kDir, 2, Retention(), 2), IsOk());
  }
  std::string PathOf(int64_t step, const std::string& file) {
    return absl::StrCat(kDir, "/", CheckpointName(step), "/", file);
  }
  // The reader must name the file of the newest checkpoint, say this, and use
  // the one before it.
  void ExpectFallback(const std::string& file, const std::string& says) {
    const auto newest = CheckpointReader::OpenNewest(&fs_, kDir);
    ASSERT_THAT(newest, IsOk());
    ASSERT_TRUE(IsExample(*newest->reader, 1));
    ASSERT_THAT(newest->warnings, ElementsAre(AllOf(HasSubstr(PathOf(2, file)),
                                                    HasSubstr(says))));
  }
  void Flip(const std::string& whole, const std::string& file, size_t bit) {
    std::string contents = whole;
    contents[bit / 8] = static_cast<char>(contents[bit / 8] ^ 1 << bit % 8);
    fs_.SetContents(PathOf(2, file), contents);
  }

  FakeFileSystem fs_{kDir};
};

// The tensor at this byte of one of the example's files; "" in a header and in
// the manifest.
std::string TensorAt(const CheckpointReader& reader, const std::string& file,
                     int64_t file_bytes, int64_t byte) {
  if (file == kManifestFile) return "";
  // From the end, where the last tensor ends.
  int64_t end = file_bytes;
  for (size_t i = reader.pieces().size(); i > 0; --i) {
    const CheckpointPiece& piece = reader.pieces()[i - 1];
    if (piece.slot.empty() != (file == kParametersFile)) continue;
    if (byte >= end - piece.size_bytes && byte < end) {
      return PieceName(piece);
    }
    end -= piece.size_bytes;
  }
  return "";
}

TEST_P(CheckpointDamageTest, EveryFlippedBitIsFoundAndNamed) {
  const std::string file = GetParam();
  const auto whole = CheckpointReader::OpenNewest(&fs_, kDir);
  ASSERT_THAT(whole, IsOk());
  const std::string contents = fs_.Contents(PathOf(2, file));
  std::mt19937_64 random(kSeed);
  // Every bit of the start, where headers and versions are, and as many more
  // anywhere.
  for (size_t i = 0; i < 2 * kRandomBits; ++i) {
    const size_t bit = i < kRandomBits ? i : random() % (contents.size() * 8);
    SCOPED_TRACE(absl::StrCat("bit ", bit, " seed ", kSeed));
    Flip(contents, file, bit % (contents.size() * 8));
    ExpectFallback(file, TensorAt(*whole->reader, file,
                                  static_cast<int64_t>(contents.size()),
                                  static_cast<int64_t>(bit / 8)));
    if (HasFatalFailure()) return;
  }
}

TEST_P(CheckpointDamageTest, EveryLengthButTheRightOneIsFound) {
  const std::string file = GetParam();
  const std::string contents = fs_.Contents(PathOf(2, file));
  for (const size_t size : {size_t{0}, size_t{7}, size_t{8}, size_t{100},
                            contents.size() / 2, contents.size() - 1}) {
    SCOPED_TRACE(size);
    fs_.SetContents(PathOf(2, file), contents.substr(0, size));
    ExpectFallback(file, "");
  }
  fs_.SetContents(PathOf(2, file), contents + "x");
  ExpectFallback(file, "");
  ASSERT_THAT(fs_.Remove(PathOf(2, file)), IsOk());
  ExpectFallback(file, "not there");
}

INSTANTIATE_TEST_SUITE_P(Files, CheckpointDamageTest,
                         ::testing::Values(kParametersFile, kSlotsFile,
                                           kManifestFile),
                         [](const auto& info) {
                           return info.param.substr(0, info.param.find('.'));
                         });

// ---- T11 -----------------------------------------------------------------

class OtherCheckpointTest : public CheckpointDamageTest {
 protected:
  // The text of the newest manifest with something replaced.
  void Edit(const std::string& from, const std::string& to) {
    const std::string path = PathOf(2, kManifestFile);
    const std::string text = fs_.Contents(path);
    const std::string edited = absl::StrReplaceAll(text, {{from, to}});
    EXPECT_NE(text, edited);
    fs_.SetContents(path, edited);
  }
};

TEST_F(OtherCheckpointTest, AnEditedManifestIsNotTakenForANewerOne) {
  Edit("format_version: 4", "format_version: 9");
  ExpectFallback(kManifestFile, "CRC in the manifest's last line");
}

TEST_F(OtherCheckpointTest, ANewerFormatIsNamedAndNotPassedOver) {
  const CheckpointManifest manifest = ExampleManifest(2);
  fs_.SetContents(PathOf(2, kManifestFile), *FormatManifest(manifest, 9));
  EXPECT_THAT(CheckpointReader::OpenNewest(&fs_, kDir),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(PathOf(2, kManifestFile)),
                             HasSubstr("format version 9"),
                             HasSubstr("reads up to 8"))));
}

TEST_F(OtherCheckpointTest, TheFirstFormatIsRead) {
  const auto newest = CheckpointReader::OpenNewest(&fs_, kDir);
  ASSERT_THAT(newest, IsOk());
  fs_.SetContents(PathOf(2, kManifestFile),
                  *FormatManifest(newest->reader->manifest(), 1));
  const auto reader =
      CheckpointReader::Open(&fs_, absl::StrCat(kDir, "/", CheckpointName(2)));
  ASSERT_THAT(reader, IsOk());
  EXPECT_EQ((*reader)->manifest().format_version(), 1);
  EXPECT_TRUE(IsExample(**reader, 2));
}

TEST_F(OtherCheckpointTest, AnotherModelIsNamedByTensorAndShapes) {
  const auto newest = CheckpointReader::OpenNewest(&fs_, kDir);
  ASSERT_THAT(newest, IsOk());
  std::vector<TensorDef> model = SmallParameters();
  model[1] = MakeTensor("conv/weights", {50, 51});
  OptimizerSpec adam;
  adam.set_name("adam");
  EXPECT_THAT(CheckCompatible(newest->reader->manifest(), model, adam),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'conv/weights'"), HasSubstr("[50, 51]"),
                             HasSubstr("[2500]"))));
}

}  // namespace
}  // namespace muster
