#include "worker/backend/cuda/nccl_mean.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/fake_gpu.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kElements = 3;
constexpr int64_t kBytes = kElements * sizeof(float);

FakeCuda::Options Cards(uint64_t seed) {
  FakeCuda::Options options;
  options.seed = seed;
  options.devices.resize(2);
  return options;
}

// Two cards, each with memory of its own.
class NcclMeanTest : public testing::Test {
 protected:
  CudaDevice* Open(int ordinal) {
    CudaDevice::Options options;
    options.ordinal = ordinal;
    options.name = "cuda:" + std::to_string(devices_.size());
    auto device = CudaDevice::Open(&functions_, options);
    EXPECT_THAT(device, IsOk());
    devices_.push_back(*std::move(device));
    return devices_.back().get();
  }
  float* Allocate(CudaDevice* device, std::vector<float>* values) {
    EXPECT_THAT(device->streams().MakeCurrent(), IsOk());
    auto buffer = device->streams().Allocate(kBytes, "a gradient");
    EXPECT_THAT(buffer, IsOk());
    char* const memory = (*buffer)->data();
    EXPECT_THAT(device->streams().CopyToDevice(memory, values->data(), kBytes),
                IsOk());
    EXPECT_THAT(device->streams().Synchronize(), IsOk());
    memory_.push_back(*std::move(buffer));
    return reinterpret_cast<float*>(memory);
  }
  std::vector<float> Read(CudaDevice* device, const float* memory) {
    std::vector<float> values(kElements);
    EXPECT_THAT(device->streams().MakeCurrent(), IsOk());
    EXPECT_THAT(device->streams().Synchronize(), IsOk());
    EXPECT_THAT(device->streams().CopyToHost(values.data(), memory, kBytes),
                IsOk());
    EXPECT_THAT(device->streams().Synchronize(), IsOk());
    return values;
  }

  FakeGpu gpu_{Cards(/*seed=*/1)};
  GpuFunctions functions_ = gpu_.functions();
  std::vector<std::unique_ptr<CudaDevice>> devices_;
  std::vector<std::unique_ptr<DeviceStreams::Buffer>> memory_;
};

TEST_F(NcclMeanTest, EveryDeviceHasTheMean) {
  CudaDevice* const first = Open(0);
  CudaDevice* const second = Open(1);
  auto mean = NcclMean::Create({first, second});
  ASSERT_THAT(mean, IsOk());
  std::vector<float> ours = {1, 2, 3};
  std::vector<float> theirs = {3, -2, 0};
  float* const memory[] = {Allocate(first, &ours), Allocate(second, &theirs)};
  ASSERT_THAT((*mean)->Run(memory, kElements), IsOk());
  EXPECT_THAT(Read(first, memory[0]), ElementsAre(2, 0, 1.5));
  EXPECT_THAT(Read(second, memory[1]), ElementsAre(2, 0, 1.5));
}

TEST_F(NcclMeanTest, TheMeanOfOneIsItself) {
  CudaDevice* const device = Open(0);
  auto mean = NcclMean::Create({device});
  ASSERT_THAT(mean, IsOk());
  std::vector<float> values = {1, 2, 3};
  float* const memory[] = {Allocate(device, &values)};
  ASSERT_THAT((*mean)->Run(memory, kElements), IsOk());
  EXPECT_THAT(Read(device, memory[0]), ElementsAre(1, 2, 3));
}

TEST_F(NcclMeanTest, RefusesACardTwice) {
  EXPECT_THAT(
      NcclMean::Create({Open(1), Open(1)}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("cuda:0, cuda:1"), HasSubstr("card 1 twice"))));
}

TEST_F(NcclMeanTest, SaysThatNcclIsMissing) {
  functions_.nccl = {};
  EXPECT_THAT(NcclMean::Create({Open(0), Open(1)}),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("libnccl.so.2"),
                             HasSubstr("--gpu_library_path"))));
}

TEST_F(NcclMeanTest, EveryFailureNamesTheDevices) {
  CudaDevice* const first = Open(0);
  CudaDevice* const second = Open(1);
  gpu_.calls().Reset(1);
  EXPECT_THAT(NcclMean::Create({first, second}),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("connect cuda:0, cuda:1 by NCCL: NCCL says")));
  gpu_.calls().Reset(0);
  auto mean = NcclMean::Create({first, second});
  ASSERT_THAT(mean, IsOk());
  std::vector<float> values = {1, 2, 3};
  float* const memory[] = {Allocate(first, &values), Allocate(second, &values)};
  int64_t call = 1;
  for (;; ++call) {
    gpu_.calls().Reset(call);
    const absl::Status status = (*mean)->Run(memory, kElements);
    if (gpu_.calls().failed().empty()) break;
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInternal,
                         HasSubstr("mean of 3 elements over cuda:0, cuda:1")))
        << gpu_.calls().failed();
  }
  // A group, one call a device.
  EXPECT_EQ(call, 5);
}

TEST_F(NcclMeanTest, LeavesNothingBehind) {
  CudaDevice* const device = Open(0);
  const std::string before = gpu_.Leaks();
  { ASSERT_THAT(NcclMean::Create({device, Open(1)}), IsOk()); }
  devices_.pop_back();
  EXPECT_EQ(gpu_.Leaks(), before);
}

}  // namespace
}  // namespace muster
