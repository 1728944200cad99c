#include "common/checkpoint/table_order.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Of table "user": logical shard 151, 200, 373, 868.
constexpr int64_t kOrdered[] = {INT64_MAX, -1, 0, 1};

TEST(TableOrderTest, RowsByLogicalShard_AreInOrderHoweverTheyAreCut) {
  TableOrder order("user");
  EXPECT_THAT(order.Add({kOrdered[0], kOrdered[1]}), IsOk());
  EXPECT_THAT(order.Add({}), IsOk());
  EXPECT_THAT(order.Add({kOrdered[2], kOrdered[3]}), IsOk());
}

TEST(TableOrderTest, ALowerLogicalShardBehindAHigher_IsNamed) {
  TableOrder order("user");
  EXPECT_THAT(order.Add({0, -1}),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("table 'user': row 1 has id -1"),
                             HasSubstr("behind id 0"))));
}

TEST(TableOrderTest, AnIdTwice_IsNamedAlsoAcrossBlocks) {
  TableOrder order("user");
  ASSERT_THAT(order.Add({0}), IsOk());
  EXPECT_THAT(order.Add({0}), StatusIs(absl::StatusCode::kDataLoss,
                                       HasSubstr("row 1 has id 0")));
}

TEST(TableOrderTest, IdsOfOneLogicalShard_AreOrderedAsSigned) {
  // Two ids of one logical shard, one of them negative.
  const RowHash hash("user");
  int64_t other = -2;
  while (hash.LogicalShardOf(other) != hash.LogicalShardOf(1)) --other;
  TableOrder ascending("user");
  EXPECT_THAT(ascending.Add({other, 1}), IsOk());
  TableOrder descending("user");
  EXPECT_THAT(descending.Add({1, other}),
              StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace muster
