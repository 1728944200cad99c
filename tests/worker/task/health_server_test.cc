#include "worker/task/health_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/process/stop_latch.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

TEST(HealthServerTest, StartsAndTellsItsPort) {
  const MonotonicClock clock{};
  StopLatch latch;
  const auto server = HealthServer::Start(
      "localhost:0", {absl::ZeroDuration(), &clock, &latch});
  ASSERT_THAT(server, IsOk());
  EXPECT_GT((*server)->port(), 0);
  (*server)->SetServing(true);
}

TEST(HealthServerTest, TakenPortIsAnError) {
  const MonotonicClock clock{};
  StopLatch latch;
  const PortWait wait = {absl::ZeroDuration(), &clock, &latch};
  const auto first = HealthServer::Start("localhost:0", wait);
  ASSERT_THAT(first, IsOk());
  const std::string address = absl::StrCat("localhost:", (*first)->port());
  EXPECT_THAT(
      HealthServer::Start(address, wait),
      StatusIs(absl::StatusCode::kUnavailable, testing::HasSubstr(address)));
}

}  // namespace
}  // namespace muster
