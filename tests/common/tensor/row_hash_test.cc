#include "common/tensor/row_hash.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(RowHashTest, TheShardsOfAllTasks_AreContiguousRunsThatCoverAllOnce) {
  for (const int num_ps : {1, 2, 3, 7, 1000, 1024}) {
    EXPECT_EQ(FirstLogicalShard(0, num_ps), 0);
    EXPECT_EQ(FirstLogicalShard(num_ps, num_ps), kLogicalShards);
    for (int ps = 0; ps < num_ps; ++ps) {
      const int end = FirstLogicalShard(ps + 1, num_ps);
      EXPECT_LT(FirstLogicalShard(ps, num_ps), end);
      for (int shard = FirstLogicalShard(ps, num_ps); shard < end; ++shard) {
        EXPECT_EQ(PsOfLogicalShard(shard, num_ps), ps) << shard;
      }
    }
  }
}

TEST(RowHashTest, IdsInARow_AreSpreadEvenlyOverLogicalShards) {
  constexpr int kIds = 100 * kLogicalShards;
  std::vector<int> ids_of(kLogicalShards, 0);
  const RowHash hash("user");
  for (int64_t id = 0; id < kIds; ++id) ++ids_of[hash.LogicalShardOf(id)];
  // A standard deviation is 10.
  for (const int ids : ids_of) {
    EXPECT_GT(ids, 40);
    EXPECT_LT(ids, 160);
  }
}

// Checkpoints are in this order: it stays.
TEST(RowHashTest, KnownIds_KeepTheirLogicalShards) {
  const RowHash user("user");
  const std::vector<int> shards = {
      user.LogicalShardOf(0), user.LogicalShardOf(1), user.LogicalShardOf(-1),
      user.LogicalShardOf(INT64_MAX), RowHash("item").LogicalShardOf(1)};
  EXPECT_EQ(shards, (std::vector<int>{373, 868, 200, 151, 479}));
}

}  // namespace
}  // namespace muster
