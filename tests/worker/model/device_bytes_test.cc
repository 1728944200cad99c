#include "worker/model/device_bytes.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

class DeviceBytesTest : public testing::Test {
 protected:
  DeviceBytesTest() { plan_.num_devices = 2; }

  int Add(BufferSpace space, int device, int index = 0) {
    PlanBuffer buffer;
    buffer.space = space;
    buffer.device = device;
    buffer.index = index;
    buffer.size_bytes = 64;
    plan_.buffers.push_back(buffer);
    return static_cast<int>(plan_.buffers.size()) - 1;
  }
  void Transfer(int src, int dst) {
    Instruction transfer;
    transfer.operands = {{Operand::kSrc, 0, src}, {Operand::kDst, 0, dst}};
    plan_.instructions.push_back(std::move(transfer));
  }

  ExecutionPlan plan_;
};

TEST_F(DeviceBytesTest, AParameterIsItsFirstReaders) {
  Add(BufferSpace::kParameter, 0, 0);
  Add(BufferSpace::kParameter, 1, 1);
  Add(BufferSpace::kParameter, 0, 1);
  Add(BufferSpace::kArena, 0);
  EXPECT_THAT(ParameterBytes(plan_, {100, 1000}, /*copies=*/2),
              ElementsAre(200, 2000));
}

TEST_F(DeviceBytesTest, CountsWhatGoesToOtherDevices) {
  const int first = Add(BufferSpace::kArena, 0);
  const int second = Add(BufferSpace::kArena, 1);
  const int same = Add(BufferSpace::kArena, 0);
  Transfer(first, second);
  Transfer(first, second);
  Transfer(first, same);
  Transfer(second, first);
  EXPECT_THAT(SentBytes(plan_), ElementsAre(128, 64));
}

TEST_F(DeviceBytesTest, WhatGoesThroughTheHostIsCountedOnce) {
  plan_.has_host_arena = true;
  const int host = Add(BufferSpace::kArena, plan_.num_devices);
  Transfer(Add(BufferSpace::kArena, 0), host);
  Transfer(host, Add(BufferSpace::kArena, 1));
  EXPECT_THAT(SentBytes(plan_), ElementsAre(64, 0));
}

}  // namespace
}  // namespace muster
