#include "ps_server/shard/namespace_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::StartsWith;

TEST(NamespaceTableTest, KnowsTheDefaultNamespaceAndNamesAnyOther) {
  const ShardOptions options;
  BufferPool replies;
  NamespaceTable models(options, &replies);
  EXPECT_THAT(models.Find("pull", ""), IsOkAndHolds(&models.default_model()));
  EXPECT_THAT(models.Find("pull", "a\n"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       StartsWith("pull: namespace 'a\\n'; only ")));
}

}  // namespace
}  // namespace muster
