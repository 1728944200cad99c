#include "tests/worker/backend/cuda/kernel_on_host.h"

#include <array>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;

TEST(KernelOnHostTest, RunsEveryThreadOfEveryBlock) {
  std::vector<std::array<unsigned, 4>> seen;
  RunOnHost(
      [&] {
        seen.push_back({blockIdx.x, blockIdx.y, threadIdx.x, threadIdx.y});
      },
      dim3(2, 2), dim3(3, 2));
  ASSERT_EQ(seen.size(), 24);
  EXPECT_EQ(seen.front(), (std::array<unsigned, 4>{0, 0, 0, 0}));
  EXPECT_EQ(seen[5], (std::array<unsigned, 4>{0, 0, 2, 1}));
  EXPECT_EQ(seen[6], (std::array<unsigned, 4>{1, 0, 0, 0}));
  EXPECT_EQ(seen.back(), (std::array<unsigned, 4>{1, 1, 2, 1}));
}

TEST(KernelOnHostTest, TellsTheShapesOfGridAndBlock) {
  RunOnHost(
      [] {
        EXPECT_EQ(gridDim.x, 2);
        EXPECT_EQ(gridDim.z, 4);
        EXPECT_EQ(blockDim.y, 5);
      },
      dim3(2, 3, 4), dim3(1, 5));
}

// Reverses a block's values through shared memory, twice.
TEST(KernelOnHostTest, ABarrierEndsAPartForTheWholeBlock) {
  constexpr unsigned kThreads = 5;
  std::vector<unsigned> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  RunOnHost(
      [&] {
        __shared__ unsigned shared[kThreads];
        unsigned& value = values[blockIdx.x * kThreads + threadIdx.x];
        shared[threadIdx.x] = value;
        __syncthreads();
        value = shared[kThreads - 1 - threadIdx.x];
        __syncthreads();
        shared[threadIdx.x] = value + 10;
        __syncthreads();
        value = shared[kThreads - 1 - threadIdx.x];
      },
      dim3(2), dim3(kThreads));
  EXPECT_THAT(values, ElementsAre(10, 11, 12, 13, 14, 15, 16, 17, 18, 19));
}

TEST(KernelOnHostDeathTest, EndsWhereAThreadMissesABarrier) {
  EXPECT_DEATH(RunOnHost(
                   [] {
                     if (threadIdx.x != 1) __syncthreads();
                   },
                   dim3(1), dim3(3)),
               "a thread returned while others");
}

TEST(KernelOnHostTest, HostThreadsRunGridsAtOnce) {
  std::array<int, 2> sums = {};
  std::vector<std::thread> threads;
  for (int& sum : sums) {
    threads.emplace_back([&sum] {
      RunOnHost(
          [&sum] {
            __syncthreads();
            sum += static_cast<int>(threadIdx.x);
          },
          dim3(50), dim3(10));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(sums, ElementsAre(50 * 45, 50 * 45));
}

TEST(KernelOnHostTest, RefusesGridsThatNoDeviceStarts) {
  EXPECT_EQ(CheckGrid(dim3(1), dim3(1024)), cudaSuccess);
  EXPECT_EQ(CheckGrid(dim3(0), dim3(1)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(CheckGrid(dim3(1), dim3(0)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(CheckGrid(dim3(1), dim3(1025)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(CheckGrid(dim3(1), dim3(33, 32)), cudaErrorInvalidConfiguration);
  EXPECT_EQ(CheckGrid(dim3(1, 65536), dim3(1)), cudaErrorInvalidConfiguration);
}

}  // namespace
}  // namespace muster
