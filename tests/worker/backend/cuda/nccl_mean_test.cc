#include "worker/backend/cuda/nccl_mean.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/fake_gpu.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
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

// The outcomes of the mean of `memory` and of its arrival, one a member, each
// on a thread of its own.
std::vector<absl::Status> AverageAll(NcclMean* mean,
                                     const std::vector<CudaDevice*>& devices,
                                     const std::vector<float*>& memory) {
  std::vector<absl::Status> told(devices.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < devices.size(); ++i) {
    threads.emplace_back([&, i] {
      DeviceStreams& streams = devices[i]->streams();
      told[i] = streams.MakeCurrent();
      if (told[i].ok()) {
        told[i] = mean->Average(static_cast<int>(i), memory[i], kElements);
      }
      if (!told[i].ok()) mean->Abort();
      const absl::Status waited = streams.Synchronize();
      if (told[i].ok()) told[i] = waited;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return told;
}

TEST_F(NcclMeanTest, EveryDeviceHasTheMean) {
  CudaDevice* const first = Open(0);
  CudaDevice* const second = Open(1);
  const auto mean = NcclMean::Create({first, second});
  ASSERT_THAT(mean, IsOk());
  std::vector<float> ours = {1, 2, 3};
  std::vector<float> theirs = {3, -2, 0};
  const std::vector<float*> memory = {Allocate(first, &ours),
                                      Allocate(second, &theirs)};
  EXPECT_THAT(AverageAll(mean->get(), {first, second}, memory), Each(IsOk()));
  EXPECT_THAT(Read(first, memory[0]), ElementsAre(2, 0, 1.5));
  EXPECT_THAT(Read(second, memory[1]), ElementsAre(2, 0, 1.5));
}

TEST_F(NcclMeanTest, PartsOfOneCardHaveNone) {
  const auto mean = NcclMean::Create({Open(1), Open(1)});
  ASSERT_THAT(mean, IsOk());
  EXPECT_EQ(*mean, nullptr);
}

TEST_F(NcclMeanTest, WithoutNcclThereIsNone) {
  functions_.nccl = {};
  const auto mean = NcclMean::Create({Open(0), Open(1)});
  ASSERT_THAT(mean, IsOk());
  EXPECT_EQ(*mean, nullptr);
}

TEST_F(NcclMeanTest, AConnectionThatFailsNamesTheDevices) {
  CudaDevice* const first = Open(0);
  CudaDevice* const second = Open(1);
  gpu_.calls().Reset(1);
  EXPECT_THAT(NcclMean::Create({first, second}),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("connect cuda:0, cuda:1 by NCCL: NCCL says")));
}

// The other one does not wait for ever.
TEST_F(NcclMeanTest, AMemberThatFailsEndsItForAll) {
  CudaDevice* const first = Open(0);
  CudaDevice* const second = Open(1);
  const auto mean = NcclMean::Create({first, second});
  ASSERT_THAT(mean, IsOk());
  std::vector<float> values = {1, 2, 3};
  float* const memory = Allocate(first, &values);
  ASSERT_THAT(first->streams().MakeCurrent(), IsOk());
  // One has put its work, and waits for the other, which fails.
  ASSERT_THAT((*mean)->Average(0, memory, kElements), IsOk());
  gpu_.calls().Reset(1);
  EXPECT_THAT(
      (*mean)->Average(1, memory, kElements),
      StatusIs(absl::StatusCode::kInternal,
               AllOf(HasSubstr("mean of 3 elements over cuda:0, cuda:1"),
                     HasSubstr("NCCL says"))));
  (*mean)->Abort();
  EXPECT_THAT(first->streams().Synchronize(), IsOk());
  EXPECT_THAT((*mean)->Average(0, memory, kElements),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("another device has failed before")));
}

// Waits for what it is asked to, and never gives up.
class PatientClock : public MonotonicClock {
 public:
  bool Await(absl::Mutex* mu, const absl::Condition& condition,
             absl::Duration) const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (!waits.HasBeenNotified()) waits.Notify();
    mu->Await(condition);
    return true;
  }

  // A wait has begun.
  mutable absl::Notification waits;
};

// NCCL would free what the call uses.
TEST_F(NcclMeanTest, AnAbortWaitsForTheCallOfAnotherMember) {
  CudaDevice* const first = Open(0);
  const PatientClock clock;
  const auto mean =
      NcclMean::Create({first, Open(1)}, NcclMean::kPatience, &clock);
  ASSERT_THAT(mean, IsOk());
  std::vector<float> values = {1, 2, 3};
  float* const memory = Allocate(first, &values);
  absl::Notification begun;
  std::atomic<bool> is_within = false;
  std::atomic<bool> aborted_within = false;
  std::atomic<int> aborts = 0;
  functions_.nccl.AllReduce = [&](auto...) {
    is_within = true;
    begun.Notify();
    // An abort waits, or has been.
    while (!clock.waits.HasBeenNotified() && aborts == 0) {
      std::this_thread::yield();
    }
    is_within = false;
    return ncclSuccess;
  };
  functions_.nccl.CommAbort =
      [&, abort = functions_.nccl.CommAbort](ncclComm_t comm) {
        if (is_within) aborted_within = true;
        ++aborts;
        return abort(comm);
      };
  std::thread other(
      [&] { EXPECT_THAT((*mean)->Average(0, memory, kElements), IsOk()); });
  begun.WaitForNotification();
  (*mean)->Abort();
  other.join();
  EXPECT_FALSE(aborted_within);
  EXPECT_EQ(aborts, 2);
}

// As one does that waits for another member to connect.
TEST_F(NcclMeanTest, AnAbortEndsACallThatDoesNotReturn) {
  CudaDevice* const first = Open(0);
  const auto mean = NcclMean::Create({first, Open(1)}, absl::Milliseconds(10));
  ASSERT_THAT(mean, IsOk());
  std::vector<float> values = {1, 2, 3};
  float* const memory = Allocate(first, &values);
  absl::Notification begun;
  absl::Notification aborted;
  functions_.nccl.AllReduce = [&](auto...) {
    begun.Notify();
    aborted.WaitForNotification();
    return ncclRemoteError;
  };
  functions_.nccl.CommAbort =
      [&, abort = functions_.nccl.CommAbort](ncclComm_t comm) {
        if (!aborted.HasBeenNotified()) aborted.Notify();
        return abort(comm);
      };
  std::thread other([&] {
    EXPECT_THAT((*mean)->Average(0, memory, kElements),
                StatusIs(absl::StatusCode::kInternal));
  });
  begun.WaitForNotification();
  (*mean)->Abort();
  other.join();
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
