#include "ps_server/shard/shard_definition.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class ShardDefinitionTest : public testing::Test {
 protected:
  ShardDefinitionTest() { options_.max_bytes = 1000; }

  ShardOptions options_;
  DefineRequest request_ =
      MakeDefine(MakeSender(0, 1), {MakeTensor("w", {100})});
};

TEST_F(ShardDefinitionTest, LeavesToASnapshotWhatTheTensorsDoNotTake) {
  const auto definition =
      CheckDefinition(request_, options_, options_.max_bytes);
  ASSERT_THAT(definition, IsOk());
  EXPECT_EQ(definition->max_copy_bytes, 600);
  EXPECT_EQ(definition->optimizer_name, "sgd");
  EXPECT_EQ(definition->policy->name(), "async");
  EXPECT_EQ(definition->fingerprint, request_.fingerprint());
  EXPECT_FALSE(definition->may_be_read_in_place);
}

TEST_F(ShardDefinitionTest, LeavesHalfOfItToTheGradientsOfARound) {
  request_.mutable_replication()->mutable_sync();
  const auto definition =
      CheckDefinition(request_, options_, options_.max_bytes);
  ASSERT_THAT(definition, IsOk());
  EXPECT_EQ(definition->max_copy_bytes, 300);
}

TEST_F(ShardDefinitionTest, RefusesWhatHasNoRoom) {
  options_.max_bytes = 399;
  EXPECT_THAT(CheckDefinition(request_, options_, options_.max_bytes),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'w': 400 bytes with its slots")));
}

}  // namespace
}  // namespace muster
