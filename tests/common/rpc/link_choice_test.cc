#include "common/rpc/link_choice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

TEST(LinkChoiceTest, ReadsEachName) {
  EXPECT_EQ(*ParseLinkChoice("auto"), LinkChoice::kAuto);
  EXPECT_EQ(*ParseLinkChoice("shared_memory"), LinkChoice::kSharedMemory);
  EXPECT_EQ(*ParseLinkChoice("tcp"), LinkChoice::kTcp);
  EXPECT_EQ(*ParseLinkChoice("grpc"), LinkChoice::kGrpc);
}

TEST(LinkChoiceTest, ListsTheNamesToWhoHasAnother) {
  for (const char* const text : {"", "shm", "GRPC", "auto\n"}) {
    EXPECT_THAT(ParseLinkChoice(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::HasSubstr(
                             "wanted auto, shared_memory, tcp or grpc")));
  }
}

}  // namespace
}  // namespace muster
