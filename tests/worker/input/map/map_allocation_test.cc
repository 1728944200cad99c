#include <cstdint>

#include "common/tensor/aligned_buffer.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/map/map_fixture.h"
#include "tests/worker/model/allocation_counter.h"
#include "worker/input/map/map_chain.h"

namespace muster {
namespace {

TEST(MapAllocationTest, AllocatesNothingInTheSteadyState) {
  const auto chain = MapChain::Create(
      MapStages({"type: 'resize' attr { name: 'size' i: 40 }", "type: 'cast'",
                 "type: 'random_crop' attr { name: 'size' i: 32 }",
                 "type: 'random_flip'",
                 "type: 'normalize' attr { name: 'mean' s: '0.5' } "
                 "attr { name: 'std' s: '0.25' }",
                 "type: 'cutout' attr { name: 'size' i: 8 }"}),
      {UINT8, {3, 36, 36}});
  ASSERT_THAT(chain, IsOk());
  MapChain::Scratch scratch = chain->MakeScratch();
  const AlignedBuffer src(chain->input().num_bytes());
  AlignedBuffer dst(chain->output().num_bytes());
  int failures = 0;
  const auto map = [&](int64_t example) {
    const absl::Status status =
        chain->Apply(absl::MakeConstSpan(src.data(), src.size_bytes()),
                     absl::MakeSpan(dst.data(), dst.size_bytes()),
                     RowRandom(1, 0, example), &scratch);
    if (!status.ok()) ++failures;
  };
  // A thread's first row takes memory for lines.
  map(0);
  StartCountingAllocations();
  for (int64_t example = 1; example < 10; ++example) map(example);
  EXPECT_EQ(StopCountingAllocations(), 0) << LargestAllocation();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace muster
