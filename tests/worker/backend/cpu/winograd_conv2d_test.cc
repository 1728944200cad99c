// Which convolutions the Winograd kernel gets. That it computes them is tested
// by backend_parity_products_test, how fast by conv_benchmark.
#include "worker/backend/cpu/winograd_conv2d.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

Conv2dDesc Desc(int64_t src_channels, int64_t dst_channels, int64_t batch) {
  Conv2dDesc desc;
  desc.batch = batch;
  desc.src_channels = src_channels;
  desc.dst_channels = dst_channels;
  desc.height = desc.width = 14;
  desc.window = {5, 5, 1, 1, 2, 2, 2, 2};
  return desc;
}

TEST(WinogradConv2dTest, TakesFewChannelsFromTwoRowsOn) {
  EXPECT_FALSE(IsForWinograd(Desc(32, 64, 1)));
  EXPECT_TRUE(IsForWinograd(Desc(32, 64, 2)));
  EXPECT_TRUE(IsForWinograd(Desc(64, 64, 128)));
}

TEST(WinogradConv2dTest, TakesMoreChannelsWithManyTilesOnly) {
  EXPECT_FALSE(IsForWinograd(Desc(128, 128, 1)));
  EXPECT_FALSE(IsForWinograd(Desc(128, 128, 15)));
  EXPECT_TRUE(IsForWinograd(Desc(128, 128, 16)));
}

TEST(WinogradConv2dTest, LeavesManyChannelsToOneDnn) {
  EXPECT_FALSE(IsForWinograd(Desc(256, 256, 1)));
  EXPECT_FALSE(IsForWinograd(Desc(512, 512, 128)));
  // The pairs of channels count.
  EXPECT_FALSE(IsForWinograd(Desc(32, 1024, 128)));
}

TEST(WinogradConv2dTest, CountsTilesNotRows) {
  Conv2dDesc desc = Desc(32, 64, 1);
  desc.height = desc.width = 28;
  EXPECT_TRUE(IsForWinograd(desc));
  desc.height = desc.width = 12;
  EXPECT_FALSE(IsForWinograd(desc));
}

TEST(WinogradConv2dTest, LeavesWhatItCannotDo) {
  Conv2dDesc strided = Desc(32, 64, 128);
  strided.window.stride_w = 2;
  EXPECT_FALSE(IsForWinograd(strided));
  Conv2dDesc small = Desc(32, 64, 128);
  small.window.kernel_h = 3;
  EXPECT_FALSE(IsForWinograd(small));
  Conv2dDesc grouped = Desc(32, 64, 128);
  grouped.groups = 2;
  EXPECT_FALSE(IsForWinograd(grouped));
  EXPECT_FALSE(IsForWinograd(Desc(24, 64, 128)));
}

}  // namespace
}  // namespace muster
