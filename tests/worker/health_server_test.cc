#include "worker/health_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

TEST(HealthServerTest, StartsAndTellsItsPort) {
  const MonotonicClock clock;
  const auto server = HealthServer::Start("localhost:0", clock);
  ASSERT_THAT(server, IsOk());
  EXPECT_GT((*server)->port(), 0);
  (*server)->SetServing(true);
}

TEST(HealthServerTest, TakenPortIsAnError) {
  const MonotonicClock clock;
  const auto first = HealthServer::Start("localhost:0", clock);
  ASSERT_THAT(first, IsOk());
  const std::string address = absl::StrCat("localhost:", (*first)->port());
  EXPECT_THAT(
      HealthServer::Start(address, clock, absl::ZeroDuration()),
      StatusIs(absl::StatusCode::kUnavailable, testing::HasSubstr(address)));
}

}  // namespace
}  // namespace muster
