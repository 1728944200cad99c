#include "common/cluster/placement_table.h"

#include <string>
#include <vector>

#include "common/cluster/placement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/cluster/tensors.h"

namespace muster {
namespace {

TEST(PlacementTableTest, ShowsParametersTotalsAndTheRatio) {
  const std::vector<TensorDef> tensors = {MakeTensor("conv1/weights", {3, 2}),
                                          MakeTensor("scalar", {})};
  const std::string table =
      PlacementTable(tensors, PlaceWhole(tensors, {0, 1}).value(), 2);
  EXPECT_EQ(table,
            "parameter      shape                      bytes  task\n"
            "conv1/weights  [3, 2]                        24  /job:ps/task:0\n"
            "scalar         []                             4  /job:ps/task:1\n"
            "/job:ps/task:0 holds 1 parameters, 24 bytes\n"
            "/job:ps/task:1 holds 1 parameters, 4 bytes\n"
            "imbalance ratio (fullest over mean): 1.71\n");
}

TEST(PlacementTableTest, ShowsTheElementsOfPieces) {
  const std::string table = PlacementTable(
      {MakeTensor("a", {10})}, {{{0, 0, 4}, {1, 4, 4}, {0, 8, 2}}}, 2);
  EXPECT_EQ(
      table,
      "parameter  shape                      bytes  task\n"
      "a          [10]                          16  /job:ps/task:0 [0, 4)\n"
      "a          [10]                          16  /job:ps/task:1 [4, 8)\n"
      "a          [10]                           8  /job:ps/task:0 [8, 10)\n"
      "/job:ps/task:0 holds 1 parameters, 24 bytes\n"
      "/job:ps/task:1 holds 1 parameters, 16 bytes\n"
      "imbalance ratio (fullest over mean): 1.20\n");
}

TEST(PlacementTableTest, RatioIsOneWhenEvenAndNumPsWhenOneHoldsAll) {
  const std::vector<TensorDef> tensors = {MakeTensor("a", {8}),
                                          MakeTensor("b", {8})};
  EXPECT_EQ(ImbalanceRatio(tensors, PlaceWhole(tensors, {0, 1}).value(), 2),
            1.0);
  EXPECT_EQ(ImbalanceRatio(tensors, PlaceWhole(tensors, {0, 0}).value(), 2),
            2.0);
  EXPECT_EQ(ImbalanceRatio({}, {}, 2), 1.0);
}

}  // namespace
}  // namespace muster
