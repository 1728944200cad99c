#include "ps_server/caller/ended_starts.h"

#include "common/rpc/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(EndedStartsTest, TellsAStartForGoodThatItWasEnded) {
  EndNamespaceRequest request;
  request.set_namespace_("a");
  request.set_drop(true);
  request.set_force(true);
  EndedStarts ended;
  ended.Add(5, DescribeEnd(request));
  const absl::Status status = ended.Check(MakeSender(1, 5));
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("/job:worker/task:1 was ended: namespace 'a' "
                                 "was dropped (musterctl namespace drop "
                                 "--force)")));
  EXPECT_EQ(ReasonOf(status), ErrorReason::kReplaced);
  EXPECT_THAT(ended.Check(MakeSender(1, 6)), IsOk()) << "another start of it";
}

TEST(EndedStartsTest, ForgetsTheOldest) {
  EndedStarts ended;
  for (uint64_t i = 1; i <= EndedStarts::kMost + 1; ++i) ended.Add(i, "why");
  EXPECT_THAT(ended.Check(MakeSender(0, 1)), IsOk());
  EXPECT_FALSE(ended.Check(MakeSender(0, 2)).ok());
}

}  // namespace
}  // namespace muster
