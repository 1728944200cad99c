#include "worker/backend/cpu/cpu_threads.h"

#include <atomic>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(CpuThreadsTest, RangesCoverEverythingOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const int64_t n : {0, 1, 7, 100}) {
      std::vector<std::atomic<int>> visits(n);
      ParallelFor(threads, n, /*grain=*/1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      for (const std::atomic<int>& count : visits) EXPECT_EQ(count, 1);
    }
  }
}

TEST(CpuThreadsTest, EachThreadHasItsRange) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const int64_t n : {0, 1, 7, 100}) {
      std::vector<std::atomic<int>> visits(n);
      std::vector<std::atomic<int>> calls(threads);
      ForEachThread(threads, n,
                    [&](int64_t thread, int64_t begin, int64_t end) {
                      ++calls[thread];
                      for (int64_t i = begin; i < end; ++i) ++visits[i];
                    });
      for (const std::atomic<int>& count : visits) EXPECT_EQ(count, 1);
      for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
    }
  }
}

TEST(CpuThreadsTest, SmallWorkIsOneRange) {
  int calls = 0;
  ParallelFor(/*threads=*/4, /*n=*/9, /*grain=*/10,
              [&](int64_t begin, int64_t end) {
                ++calls;
                EXPECT_EQ(begin, 0);
                EXPECT_EQ(end, 9);
              });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace muster
