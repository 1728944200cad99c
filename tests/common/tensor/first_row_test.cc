#include "common/tensor/first_row.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TableDef Table(const std::string& name, InitialRows initial, float scale) {
  TableDef table;
  table.set_name(name);
  table.set_initial(initial);
  table.set_scale(scale);
  table.set_seed(7);
  return table;
}

std::vector<float> RowOf(const TableDef& table, int64_t id, int dim = 4) {
  std::vector<float> row(dim, 9);
  FirstRow(table).Fill(id, absl::MakeSpan(row));
  return row;
}

TEST(FirstRowTest, Zeros_AreZero) {
  EXPECT_THAT(RowOf(Table("user", ZEROS, 0.05), 3), testing::Each(0));
}

TEST(FirstRowTest, UniformValues_AreSpreadOverTheScaleWithMeanZero) {
  const std::vector<float> row =
      RowOf(Table("user", UNIFORM, 0.5), INT64_MIN, 100000);
  double sum = 0;
  double squares = 0;
  for (const float value : row) {
    ASSERT_GE(value, -0.5f);
    ASSERT_LT(value, 0.5f);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / row.size(), 0, 0.005);
  EXPECT_NEAR(squares / row.size(), 0.25 / 3, 0.002);
}

TEST(FirstRowTest, OtherIdsTablesAndSeeds_GiveOtherRows) {
  TableDef user = Table("user", UNIFORM, 0.5);
  const std::vector<float> row = RowOf(user, 1);
  EXPECT_EQ(RowOf(user, 1), row);
  EXPECT_NE(RowOf(user, 2), row);
  EXPECT_NE(RowOf(Table("item", UNIFORM, 0.5), 1), row);
  user.set_seed(8);
  EXPECT_NE(RowOf(user, 1), row);
}

// A restored run makes rows that were evicted as they were: these stay.
TEST(FirstRowTest, KnownRow_KeepsItsBits) {
  EXPECT_THAT(RowOf(Table("user", UNIFORM, 0.5), 1, 3),
              testing::ElementsAre(0.18194169f, -0.14432263f, -0.15711319f));
}

}  // namespace
}  // namespace muster
