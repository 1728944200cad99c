#include "ps_server/service/offered_tokens.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

Caller WorkerOf(int index) { return {Role::kWorker, TaskKey("worker", index)}; }

TEST(OfferedTokensTest, ATokenIsOfWhomItWasMadeFor) {
  OfferedTokens tokens;
  const std::string one = tokens.Make(WorkerOf(1));
  const std::string two = tokens.Make(WorkerOf(2));
  ASSERT_TRUE(tokens.Find(one).has_value());
  EXPECT_EQ(tokens.Find(one)->task, TaskKey("worker", 1));
  EXPECT_EQ(tokens.Find(one)->transport, Transport::kSharedMemory);
  EXPECT_EQ(tokens.Find(two)->task, TaskKey("worker", 2));
  EXPECT_FALSE(tokens.Find("").has_value());
}

TEST(OfferedTokensTest, ACallerLosesItsOldestAlone) {
  OfferedTokens tokens;
  const std::string others = tokens.Make(WorkerOf(2));
  std::vector<std::string> own;
  for (size_t i = 0; i <= OfferedTokens::kMostOfCaller; ++i) {
    own.push_back(tokens.Make(WorkerOf(1)));
  }
  EXPECT_FALSE(tokens.Find(own[0]).has_value());
  EXPECT_TRUE(tokens.Find(own[1]).has_value());
  EXPECT_TRUE(tokens.Find(own.back()).has_value());
  EXPECT_TRUE(tokens.Find(others).has_value());
}

}  // namespace
}  // namespace muster
