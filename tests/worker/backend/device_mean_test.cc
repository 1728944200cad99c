#include "worker/backend/device_mean.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Each;

// Joins, and makes no mean.
class JoinedMean : public DeviceMean {
 public:
  using DeviceMean::DeviceMean;
  using DeviceMean::is_aborted;
  absl::Status Average(int, float*, int64_t) override {
    return absl::OkStatus();
  }
};

// Every member on a thread of its own; what each was told.
std::vector<absl::Status> JoinAll(DeviceMean* mean,
                                  const std::vector<absl::Status>& own) {
  std::vector<absl::Status> told(own.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < own.size(); ++i) {
    threads.emplace_back(
        [&, i] { told[i] = mean->Join(static_cast<int>(i), own[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return told;
}

TEST(DeviceMeanTest, AllGoOnTogether) {
  constexpr int kMembers = 4;
  constexpr int kRounds = 200;
  JoinedMean mean(kMembers);
  std::atomic<int> arrivals{0};
  std::vector<std::thread> threads;
  for (int member = 0; member < kMembers; ++member) {
    threads.emplace_back([&, member] {
      for (int round = 1; round <= kRounds; ++round) {
        ++arrivals;
        EXPECT_THAT(mean.Join(member, absl::OkStatus()), IsOk());
        EXPECT_GE(arrivals, round * kMembers) << "somebody was not awaited";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(DeviceMeanTest, OneThatCannotGoOnStopsAllForOneStep) {
  JoinedMean mean(3);
  const absl::Status ok;
  const absl::Status bad = absl::InvalidArgumentError("a bad label");
  const auto told = JoinAll(&mean, {ok, bad, ok});
  EXPECT_THAT(told[1], StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(told[0], StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(told[2], StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(JoinAll(&mean, {ok, ok, ok}), Each(IsOk()));
}

TEST(DeviceMeanTest, AbortEndsTheWaitForOthers) {
  JoinedMean mean(2);
  absl::Status told;
  std::thread waiting([&] { told = mean.Join(0, absl::OkStatus()); });
  mean.Abort();
  waiting.join();
  EXPECT_THAT(told, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_TRUE(mean.is_aborted());
}

}  // namespace
}  // namespace muster
