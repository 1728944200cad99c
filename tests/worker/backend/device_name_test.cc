#include "worker/backend/device_name.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(DeviceNameTest, ANameIsBackendAndIndex) {
  EXPECT_EQ(BackendOfDevice("cpu:1"), "cpu");
  EXPECT_EQ(IndexOfDevice("cpu:12"), 12);
  for (const std::string name : {"cpu", "cpu:", "cpu:01", "cpu:x", "cpu:-1"}) {
    EXPECT_EQ(IndexOfDevice(name), -1) << name;
  }
}

TEST(DeviceNameTest, ReadsNamesOfTensorFlow) {
  for (const std::string name :
       {"cpu:1", "/cpu:1", "/device:CPU:1", "device:cpu:1", "CPU:1"}) {
    EXPECT_EQ(CanonicalDevice(name), "cpu:1") << name;
  }
  for (const std::string name :
       {"cuda:0", "gpu:0", "/gpu:0", "/device:GPU:0", "GPU:0"}) {
    EXPECT_EQ(CanonicalDevice(name), "cuda:0") << name;
  }
  EXPECT_EQ(CanonicalDevice("gpu"), "cuda");
}

TEST(DeviceNameTest, LeavesWhatIsNoNameOfADevice) {
  for (const std::string text : {"", "/", "auto", "GPU:", "/device:", "/gpu:x",
                                 "cpu:01", "/job:worker/task:0/gpu:0x"}) {
    EXPECT_EQ(CanonicalDevice(text), text);
  }
}

}  // namespace
}  // namespace muster
