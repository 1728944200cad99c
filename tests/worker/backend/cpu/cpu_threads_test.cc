#include "worker/backend/cpu/cpu_threads.h"

#include <dlfcn.h>

#include <atomic>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oneapi/dnnl/dnnl.h"

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

// Through the six functions that the dynamic linker gives it, which libgomp has
// too.
TEST(CpuThreadsTest, OneDnnComputesOnThem) {
  for (const int64_t n : {1, 300}) {
    std::vector<float> a(n * n, 1), product(n * n);
    UseComputeThreads(3);
    ASSERT_EQ(dnnl_sgemm('N', 'N', n, n, n, 1, a.data(), n, a.data(), n, 0,
                         product.data(), n),
              dnnl_success);
    EXPECT_THAT(product, testing::Each(n));
  }
  ASSERT_NE(dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD), nullptr)
      << "not loaded: then it says nothing that ours are found";
  for (const char* const name :
       {"GOMP_parallel", "GOMP_barrier", "omp_get_thread_num",
        "omp_get_num_threads", "omp_get_max_threads", "omp_in_parallel"}) {
    Dl_info found = {};
    ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, name), &found), 0) << name;
    EXPECT_THAT(found.dli_fname, testing::Not(testing::HasSubstr("libgomp")))
        << name;
  }
}

}  // namespace
}  // namespace muster
