#include "worker/update_rows.h"

#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

int64_t RowsOf(const std::string& replication) {
  ReplicationSpec spec;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(replication, &spec));
  return UpdateRows(spec, /*worker_rows=*/64, /*workers=*/4);
}

TEST(UpdateRowsTest, AreAPushWhereEachPushIsApplied) {
  EXPECT_EQ(RowsOf(""), 64);
  EXPECT_EQ(RowsOf("async {}"), 64);
  EXPECT_EQ(RowsOf("bounded_staleness { bound: 2 }"), 64);
}

TEST(UpdateRowsTest, AreThoseOfAllAggregatedPushesInSync) {
  EXPECT_EQ(RowsOf("sync {}"), 256);
  EXPECT_EQ(RowsOf("sync { replicas_to_aggregate: 3 }"), 192);
  EXPECT_EQ(RowsOf("sync { total_replicas: 2 }"), 128);
  EXPECT_EQ(RowsOf("sync { replicas_to_aggregate: 1 total_replicas: 4 }"), 64);
}

}  // namespace
}  // namespace muster
