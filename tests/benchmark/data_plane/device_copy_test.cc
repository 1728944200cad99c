// On a fake card: every byte goes there and back.
#include "tests/benchmark/data_plane/device_copy.h"

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

class DeviceCopyTest : public testing::TestWithParam<CopyTo> {};

TEST_P(DeviceCopyTest, CopiesAllBytes) {
  WorkloadOptions options;
  options.bytes = 10001;
  const auto copy = MakeDeviceCopy(options, GetParam());
  ASSERT_THAT(copy, IsOk());
  EXPECT_THAT((*copy)->Step(0), IsOk());
  EXPECT_THAT((*copy)->Step(0), IsOk());
  EXPECT_THAT((*copy)->Check(), IsOk());
  EXPECT_EQ((*copy)->bytes_per_step(), options.bytes);
}

INSTANTIATE_TEST_SUITE_P(Ways, DeviceCopyTest,
                         testing::Values(CopyTo::kDevice, CopyTo::kHost),
                         [](const auto& info) {
                           return info.param == CopyTo::kDevice ? "ToDevice"
                                                                : "ToHost";
                         });

}  // namespace
}  // namespace muster
