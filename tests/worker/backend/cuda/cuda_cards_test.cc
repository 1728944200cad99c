#include "worker/backend/cuda/cuda_cards.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/failing_calls.h"
#include "tests/worker/backend/cuda/fake_cuda.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

FakeCuda::Device OfCapability(int major, int minor) {
  FakeCuda::Device device;
  device.major = major;
  device.minor = minor;
  return device;
}

TEST(CudaCardsTest, ListsEachCardAndWhyOneIsOfNoUse) {
  FakeCuda::Options options;
  options.devices = {OfCapability(9, 0), OfCapability(7, 5),
                     OfCapability(7, 0)};
  FakeCuda fake(options);
  const auto cards = ListCudaCards({fake.functions(), {}, {}, {}});
  ASSERT_THAT(cards, IsOk());
  ASSERT_THAT(*cards, SizeIs(3));
  EXPECT_EQ((*cards)[0].Describe(),
            "Fake GPU, compute capability 9.0, 1.0 GiB");
  EXPECT_EQ((*cards)[0].unusable, "");
  EXPECT_EQ((*cards)[1].unusable, "");
  EXPECT_EQ((*cards)[2].ordinal, 2);
  EXPECT_EQ((*cards)[2].unusable, "compute capability 7.0: wanted 7.5 or more");
}

TEST(CudaCardsTest, SaysWhatIsMissing) {
  FakeCuda::Options options;
  options.no_device = cudaErrorInsufficientDriver;
  options.driver_version = 12040;
  FakeCuda old(options);
  EXPECT_THAT(
      ListCudaCards({old.functions(), {}, {}, {}}),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("look for CUDA devices: CUDA says"),
                     HasSubstr("NVIDIA's driver is one for CUDA 12.4; install "
                               "one for CUDA 13 or newer"))));
  options.driver_version = 0;
  FakeCuda no_driver(options);
  EXPECT_THAT(ListCudaCards({no_driver.functions(), {}, {}, {}}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("there is no driver of NVIDIA; install one")));
  options.no_device = cudaErrorNoDevice;
  FakeCuda none(options);
  EXPECT_THAT(ListCudaCards({none.functions(), {}, {}, {}}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("CUDA_VISIBLE_DEVICES hides all")));
}

TEST(CudaCardsTest, EveryCallThatFailsIsTold) {
  FakeCuda fake((FakeCuda::Options()));
  FailingCalls calls;
  const GpuFunctions gpu = calls.Wrap({fake.functions(), {}, {}, {}});
  for (int n = 1; n <= 2; ++n) {
    calls.Reset(n);
    EXPECT_FALSE(ListCudaCards(gpu).ok()) << calls.failed();
  }
}

}  // namespace
}  // namespace muster
