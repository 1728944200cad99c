#include "tests/worker/backend/cuda/fake_nccl.h"

#include <functional>
#include <utility>

#include "gtest/gtest.h"
#include "tests/worker/backend/cuda/fake_cuda.h"

namespace muster {
namespace {

FakeCuda::Options Cards() {
  FakeCuda::Options options;
  options.devices.resize(2);
  return options;
}

// Two ranks; no call gets as far as a stream.
class FakeNcclTest : public testing::Test {
 protected:
  FakeNcclTest() { nccl_.CommInitAll(comms_, 2, nullptr); }

  ncclResult_t Reduce(int rank, size_t count = 1) {
    return nccl_.AllReduce(&value_, &value_, count, ncclFloat32, ncclAvg,
                           comms_[rank], nullptr);
  }

  FakeCuda cuda_{Cards()};
  FakeNccl fake_{
      cuda_.functions(), [this](cudaStream_t stream, std::function<void()> work,
                                std::function<bool()> ready) {
        return cuda_.Enqueue(stream, std::move(work), std::move(ready));
      }};
  const NcclFunctions nccl_ = fake_.functions();
  ncclComm_t comms_[2] = {};
  float value_ = 0;
};

TEST_F(FakeNcclTest, RefusesADeviceTwice) {
  const int twice[] = {1, 1};
  EXPECT_EQ(nccl_.CommInitAll(comms_, 2, twice), ncclInvalidUsage);
}

TEST_F(FakeNcclTest, RefusesADeviceThatIsNone) {
  const int third[] = {2};
  EXPECT_EQ(nccl_.CommInitAll(comms_, 1, third), ncclInvalidArgument);
}

TEST_F(FakeNcclTest, RefusesWhatIsDestroyed) {
  EXPECT_EQ(fake_.Leaks(), "2 communicators");
  EXPECT_EQ(nccl_.CommDestroy(comms_[0]), ncclSuccess);
  EXPECT_EQ(nccl_.CommDestroy(comms_[0]), ncclInvalidArgument);
  EXPECT_EQ(fake_.Leaks(), "1 communicator");
  EXPECT_EQ(Reduce(0), ncclInvalidArgument);
}

}  // namespace
}  // namespace muster
