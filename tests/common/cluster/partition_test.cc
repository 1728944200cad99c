#include "common/cluster/partition.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/placement_strategy.h"
#include "common/config/text_format.h"
#include "common/tensor/blocks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/cluster/tensors.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kBlock = kBlockElements;
constexpr int64_t kBlockBytes = kBlock * 4;

PartitionSpec Spec(const std::string& text) {
  PartitionSpec spec;
  EXPECT_THAT(ParseTextProto(text, "the test", &spec), IsOk());
  return spec;
}

// (turn, length in elements) of the pieces of one tensor.
std::vector<std::pair<int, int64_t>> Cut(int64_t elements,
                                         const std::string& spec, int num_ps) {
  const auto pieces =
      CutTensors({MakeTensor("w", {elements})}, Spec(spec), num_ps);
  EXPECT_THAT(pieces, IsOk());
  std::vector<std::pair<int, int64_t>> cut;
  int64_t begin = 0;
  for (const Piece& piece : *pieces) {
    EXPECT_EQ(piece.begin, begin);
    EXPECT_EQ(piece.bytes, piece.length * 4);
    begin += piece.length;
    cut.emplace_back(piece.turn, piece.length);
  }
  EXPECT_EQ(begin, elements);
  return cut;
}

using Pieces = std::vector<std::pair<int, int64_t>>;

TEST(PartitionTest, AutoHasARunForEachPsTask) {
  for (const char* spec : {"", "auto {}"}) {
    EXPECT_EQ(Cut(7 * kBlock + 5, spec, 3),
              (Pieces{{0, 3 * kBlock}, {1, 3 * kBlock}, {2, kBlock + 5}}));
    EXPECT_EQ(Cut(kBlock + 1, spec, 3), (Pieces{{0, kBlock}, {1, 1}}));
    EXPECT_EQ(Cut(kBlock, spec, 3), (Pieces{{0, kBlock}}));
    EXPECT_EQ(Cut(7 * kBlock, spec, 1), (Pieces{{0, 7 * kBlock}}));
    EXPECT_EQ(Cut(0, spec, 3), (Pieces{{0, 0}}));
  }
}

TEST(PartitionTest, NoneCutsNothing) {
  EXPECT_EQ(Cut(7 * kBlock + 5, "none {}", 3), (Pieces{{0, 7 * kBlock + 5}}));
}

TEST(PartitionTest, FixedCutsIntoPartsOrBlocks) {
  EXPECT_EQ(Cut(7 * kBlock + 5, "fixed { parts: 3 }", 2),
            (Pieces{{0, 2 * kBlock}, {1, 3 * kBlock}, {0, 2 * kBlock + 5}}));
  EXPECT_EQ(Cut(kBlock + 5, "fixed { parts: 3 }", 2),
            (Pieces{{0, kBlock}, {1, 5}}));
}

TEST(PartitionTest, MaxBytesIsNeverPassed) {
  const std::string spec =
      absl::StrCat("max_bytes { bytes: ", 3 * kBlockBytes - 1, " }");
  EXPECT_EQ(Cut(4 * kBlock + 5, spec, 4),
            (Pieces{{0, kBlock}, {1, 2 * kBlock}, {2, kBlock + 5}}));
  EXPECT_EQ(Cut(2 * kBlock, spec, 4), (Pieces{{0, 2 * kBlock}}));
}

TEST(PartitionTest, MinMaxKeepsBothItsBounds) {
  const auto spec = [](int parts, int64_t bytes) {
    return absl::StrCat("min_max { max_parts: ", parts, " min_bytes: ", bytes,
                        " }");
  };
  EXPECT_EQ(Cut(7 * kBlock, spec(2, 1), 4),
            (Pieces{{0, 3 * kBlock}, {1, 4 * kBlock}}));
  // Two runs of three blocks, and the end that fills none.
  EXPECT_EQ(Cut(6 * kBlock + 5, spec(9, 3 * kBlockBytes), 4),
            (Pieces{{0, 3 * kBlock}, {1, 3 * kBlock + 5}}));
  EXPECT_EQ(Cut(5, spec(9, 3 * kBlockBytes), 4), (Pieces{{0, 5}}));
}

TEST(PartitionTest, PiecesOfSeveralTensorsTakeTurns) {
  const std::vector<TensorDef> tensors = {MakeTensor("a", {3 * kBlock}),
                                          MakeTensor("b", {1}),
                                          MakeTensor("c", {2 * kBlock})};
  const auto pieces = CutTensors(tensors, Spec("fixed { parts: 3 }"), 4);
  ASSERT_THAT(pieces, IsOk());
  std::vector<int> turns;
  for (const Piece& piece : *pieces) turns.push_back(piece.turn);
  EXPECT_THAT(turns, ElementsAre(0, 1, 2, 3, 0, 1));
}

TEST(PartitionTest, NeighboursOnOnePsTaskAreOneExtent) {
  const std::vector<TensorDef> tensors = {MakeTensor("a", {5 * kBlock})};
  const auto pieces = CutTensors(tensors, Spec("fixed { parts: 5 }"), 2);
  ASSERT_THAT(pieces, IsOk());
  const Placement placement = PlacePieces(1, *pieces, {1, 1, 0, 1, 1});
  EXPECT_THAT(placement, ElementsAre(ElementsAre(
                             TensorExtent{1, 0, 2 * kBlock},
                             TensorExtent{0, 2 * kBlock, kBlock},
                             TensorExtent{1, 3 * kBlock, 2 * kBlock})));
  EXPECT_THAT(CheckPlacement(tensors, placement, 2, kBlock), IsOk());
}

TEST(PartitionTest, SettingsThatCannotBeAreRefusedByName) {
  const std::pair<const char*, const char*> kCases[] = {
      {"fixed {}", "partition.fixed.parts must be at least 1, found 0"},
      {"fixed { parts: -1 }", "partition.fixed.parts must be at least 1"},
      {"max_bytes {}", "partition.max_bytes.bytes must be at least 262144"},
      {"max_bytes { bytes: 262143 }", "found 262143"},
      {"min_max { min_bytes: 1 }", "partition.min_max.max_parts must be"},
      {"min_max { max_parts: 1 }", "partition.min_max.min_bytes must be"},
  };
  for (const auto& [spec, wanted] : kCases) {
    EXPECT_THAT(
        CheckPartition(Spec(spec)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(wanted)));
  }
}

TEST(PartitionTest, MorePartsThanTheLargestTensorHasBlocksAreRefused) {
  const std::vector<TensorDef> tensors = {
      MakeTensor("small", {1}), MakeTensor("large", {2 * kBlock + 1})};
  EXPECT_THAT(CheckPartsFit(tensors, Spec("fixed { parts: 3 }")), IsOk());
  EXPECT_THAT(
      CheckPartsFit(tensors, Spec("fixed { parts: 4 }")),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr(
                    "placement.partition.fixed.parts is 4; wanted at most 3"),
                HasSubstr("largest parameter, 'large'"))));
}

TEST(PartitionTest, MorePiecesThanCanBeKeptAreRefused) {
  EXPECT_THAT(CutTensors({MakeTensor("w", {int64_t{1} << 40})},
                         Spec("max_bytes { bytes: 262144 }"), 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cuts 'w' into 16777216 pieces")));
}

// Sizes as models have them, and such as would add up on one ps task: just
// above a border of blocks, or nothing but remainders.
std::vector<TensorDef> RandomTensors(std::mt19937* random) {
  const auto draw = [random](int64_t below) {
    return static_cast<int64_t>((*random)() % static_cast<uint64_t>(below));
  };
  const int64_t kind = draw(4);
  std::vector<TensorDef> tensors;
  for (int64_t i = draw(40); i >= 0; --i) {
    int64_t elements = 1 + draw(kBlock);
    if (kind == 0 || draw(3) == 0) elements = draw(20) * kBlock + 1 + draw(3);
    if (kind == 1) elements = 2 * kBlock;
    if (kind == 2) elements = i % 2 == 0 ? kBlock : 1;
    tensors.push_back(MakeTensor(absl::StrCat("t", i), {elements}));
  }
  return tensors;
}

TEST(PartitionTest, AutoKeepsTheFullestPsTaskNearTheMean) {
  for (int seed = 1; seed <= 500; ++seed) {
    std::mt19937 random(seed);
    const std::vector<TensorDef> tensors = RandomTensors(&random);
    for (int num_ps = 1; num_ps <= 7; ++num_ps) {
      const auto pieces = CutTensors(tensors, PartitionSpec(), num_ps);
      ASSERT_THAT(pieces, IsOk());
      std::vector<int64_t> bytes(num_ps, 0);
      for (const Piece& piece : *pieces) bytes[piece.turn] += piece.bytes;
      int64_t largest_uncut = 0;
      for (const TensorDef& tensor : tensors) {
        if (NumBlocks(tensor.shape(0)) >= 2 && num_ps > 1) continue;
        largest_uncut = std::max(largest_uncut, tensor.shape(0) * 4);
      }
      const double mean = static_cast<double>(std::accumulate(
                              bytes.begin(), bytes.end(), int64_t{0})) /
                          num_ps;
      EXPECT_LE(
          static_cast<double>(*std::max_element(bytes.begin(), bytes.end())),
          mean + static_cast<double>(2 * kBlockBytes + largest_uncut))
          << "seed " << seed << ", " << num_ps << " ps tasks";
    }
  }
}

}  // namespace
}  // namespace muster
