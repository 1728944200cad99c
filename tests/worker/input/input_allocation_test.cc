// A running pipeline allocates nothing, also with several threads.
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/counting_data_set.h"
#include "tests/worker/input/leases.h"
#include "tests/worker/model/allocation_counter.h"
#include "worker/input/input_pipeline.h"

namespace muster {
namespace {

TEST(InputAllocationTest, AllocatesNothingOnceItRuns) {
  if (!CanCountAllocations()) GTEST_SKIP() << "a sanitizer has malloc";
  const CountingDataSet data_set(100);
  InputPipeline::Options options;
  options.batch_size = 4;
  options.prefetch = 2;
  options.threads = 3;
  const auto pipeline = InputPipeline::Create(&data_set, options);
  ASSERT_THAT(pipeline, IsOk());
  (*pipeline)->SetLeases(LeasesFrom(0, 4, 30, 8), {});
  // An epoch has 12.5 steps; the next one's order is made in its first.
  for (int step = 0; step < 14; ++step) {
    EXPECT_THAT((*pipeline)->Next(), IsOk());
  }
  StartCountingAllocations();
  bool ok = true;
  for (int step = 0; step < 5; ++step) ok = ok && (*pipeline)->Next().ok();
  EXPECT_EQ(StopCountingAllocations(), 0) << LargestAllocation();
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace muster
