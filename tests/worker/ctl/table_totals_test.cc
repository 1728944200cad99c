#include "worker/ctl/table_totals.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;

void Add(const std::string& space, const std::string& table, int64_t rows,
         ListNamespacesReply* reply) {
  NamespaceState* const added = reply->add_namespaces();
  added->set_namespace_(space);
  TableState* const state = added->mutable_shard()->add_tables();
  state->mutable_definition()->set_name(table);
  state->mutable_definition()->set_dim(8);
  state->mutable_definition()->mutable_optimizer()->set_name("adagrad");
  state->set_rows(rows);
  state->set_bytes(rows * 100);
  state->set_created_rows(rows + 5);
  state->set_evicted_rows(5);
}

TEST(TableTotalsTest, RowsOfAllPsTasks_AreSummed) {
  std::vector<ListNamespacesReply> shards(3);
  Add("", "user", 10, &shards[0]);
  Add("", "user", 30, &shards[2]);
  Add("b", "item", 0, &shards[1]);
  EXPECT_THAT(
      DescribeTables(shards),
      AllOf(ContainsRegex("table +namespace +dim +rule +rows +bytes/row +"
                          "created +evicted +rows by ps task\n"),
            ContainsRegex("user +'' +8 adagrad +40 +100 +50 +10  10 0 30\n"),
            ContainsRegex("item +'b' +8 adagrad +0 +0 +5 +5  0 0 0\n")));
}

TEST(TableTotalsTest, WithoutTables_ThatIsSaid) {
  EXPECT_EQ(DescribeTables({{}, {}}), "the ps tasks hold no tables\n");
}

}  // namespace
}  // namespace muster
