#include "worker/backend/cuda/cuda_backend.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/fake_gpu.h"
#include "tests/worker/model/test_models.h"
#include "worker/executor/compiled_model.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

FakeCuda::Options Cards(int count) {
  FakeCuda::Options options;
  options.devices.resize(count);
  for (FakeCuda::Device& device : options.devices) {
    device.memory_bytes = 64 * kMiB;
  }
  return options;
}

BackendFactory FactoryOf(const FakeGpu& gpu) {
  return MakeCudaFactory([&gpu](const std::string&) {
    return absl::StatusOr<const GpuFunctions*>(&gpu.functions());
  });
}

testing::Matcher<const Device&> Named(const std::string& name) {
  return Field(&Device::name, name);
}

TEST(CudaBackendTest, ListsCards) {
  FakeGpu gpu(Cards(2));
  EXPECT_THAT(FactoryOf(gpu).devices({}),
              ElementsAre(Named("cuda:0"), Named("cuda:1")));
}

TEST(CudaBackendTest, VirtualDevicesShareACard) {
  FakeGpu gpu(Cards(2));
  GpuOptions options;
  options.virtual_devices = 2;
  const auto devices = FactoryOf(gpu).devices(options);
  EXPECT_THAT(devices, ElementsAre(Named("cuda:0"), Named("cuda:1"),
                                   Named("cuda:2"), Named("cuda:3")));
  EXPECT_THAT(devices[3].description, HasSubstr("card 1 part 2 of 2"));
}

TEST(CudaBackendTest, WithoutADriverTheFirstDeviceSaysSo) {
  FakeCuda::Options options = Cards(1);
  options.no_device = cudaErrorInsufficientDriver;
  FakeGpu gpu(options);
  const auto devices = FactoryOf(gpu).devices({});
  ASSERT_THAT(devices, ElementsAre(Named("cuda:0")));
  EXPECT_THAT(devices[0].unusable, HasSubstr("driver"));
}

TEST(CudaBackendTest, LibrariesThatAreMissingAreToldOfTheFirstDevice) {
  const BackendFactory factory = MakeCudaFactory([](const std::string& path) {
    return absl::StatusOr<const GpuFunctions*>(
        absl::UnavailableError("no cuDNN in " + path));
  });
  GpuOptions options;
  options.library_path = "/nowhere";
  const auto devices = factory.devices(options);
  ASSERT_THAT(devices, ElementsAre(Named("cuda:0")));
  EXPECT_EQ(devices[0].unusable, "no cuDNN in /nowhere");
  BackendOptions backend;
  backend.gpu = options;
  EXPECT_THAT(factory.create(backend),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no cuDNN")));
}

TEST(CudaBackendTest, ACardThatIsTooOldIsRefused) {
  FakeCuda::Options options = Cards(1);
  options.devices[0].major = 6;
  options.devices[0].minor = 1;
  FakeGpu gpu(options);
  EXPECT_THAT(FactoryOf(gpu).devices({})[0].unusable,
              HasSubstr("compute capability 6.1: wanted 7.5"));
  EXPECT_THAT(FactoryOf(gpu).create({}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("cuda:0: compute capability 6.1")));
}

TEST(CudaBackendTest, ALayerThatIsNotThereIsRefusedByName) {
  FakeGpu gpu(Cards(1));
  const auto backend = FactoryOf(gpu).create({});
  ASSERT_THAT(backend, IsOk());
  CompileOptions options;
  options.backend = backend->get();
  options.batch_size = 2;
  EXPECT_THAT(
      CompiledModel::Create(
          ParseModel("input_shape: [4] "
                     "layer { name: 'x' type: 'layer_norm' } "
                     "layer { name: 'loss' type: 'softmax_cross_entropy' }"),
          options),
      StatusIs(absl::StatusCode::kUnimplemented,
               AllOf(HasSubstr("layer 'x': layer norm"), HasSubstr("'cuda'"),
                     HasSubstr("--device=cpu"))));
}

TEST(CudaBackendTest, NoSuchDeviceIsRefused) {
  FakeGpu gpu(Cards(1));
  BackendOptions options;
  options.device_index = 1;
  EXPECT_THAT(FactoryOf(gpu).create(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cuda:1: there are 1 CUDA devices")));
}

// Device 3 of 4 is the second part of the second card.
TEST(CudaBackendTest, TheMemoryLimitIsDividedByVirtualDevices) {
  FakeGpu gpu(Cards(2));
  BackendOptions options;
  options.device_index = 3;
  options.gpu.virtual_devices = 2;
  options.gpu.memory_fraction = 0.5;
  const auto backend = FactoryOf(gpu).create(options);
  ASSERT_THAT(backend, IsOk());
  DeviceStreams& streams = *(*backend)->streams();
  ASSERT_THAT(streams.MakeCurrent(), IsOk());
  const auto half = streams.Allocate(16 * kMiB, "a test");
  EXPECT_THAT(half, IsOk());
  EXPECT_EQ(gpu.cuda().used_bytes(1), 16 * kMiB);
  EXPECT_THAT(streams.Allocate(1, "more"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("cuda:3: allocate more")));
}

TEST(CudaBackendTest, TheSmallerLimitCounts) {
  FakeGpu gpu(Cards(1));
  BackendOptions options;
  options.gpu.memory_fraction = 0.5;
  options.gpu.memory_limit_bytes = 2 * kMiB;
  const auto backend = FactoryOf(gpu).create(options);
  ASSERT_THAT(backend, IsOk());
  EXPECT_THAT((*backend)->streams()->Allocate(3 * kMiB, "a test"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("of the 2097152")));
}

// As towers are made: all cards are opened first, and the last one is current.
TEST(CudaBackendTest, EachCardMakesAndRunsItsOwnModel) {
  FakeGpu gpu(Cards(2));
  std::vector<std::unique_ptr<Backend>> backends;
  for (const int index : {0, 1}) {
    BackendOptions options;
    options.device_index = index;
    auto backend = FactoryOf(gpu).create(options);
    ASSERT_THAT(backend, IsOk());
    backends.push_back(*std::move(backend));
  }
  for (const auto& backend : backends) {
    CompileOptions options;
    options.backend = backend.get();
    options.batch_size = 2;
    const auto model =
        CompiledModel::Create(ParseModel(kManyUsesModel), options);
    ASSERT_THAT(model, IsOk());
    const Batch batch = MakeBatch(2, kManyUsesElements, kManyUsesClasses, 1);
    EXPECT_THAT((*model)->Step(batch, /*step_seed=*/1), IsOk());
  }
}

// The loss of three steps, with the lines for the operator.
std::vector<double> Losses(Backend* backend, ReportedLines* said) {
  CompileOptions options;
  options.backend = backend;
  options.batch_size = 2;
  options.reporter = said->reporter();
  const auto model = Compile(ParseModel(kManyUsesModel), options);
  EXPECT_THAT(model->InitializeParameters(1), IsOk());
  std::vector<double> losses;
  for (uint64_t step = 1; step <= 3; ++step) {
    const Batch batch = MakeBatch(2, kManyUsesElements, kManyUsesClasses, step);
    const auto result = model->Step(batch, step);
    EXPECT_THAT(result, IsOk());
    if (result.ok()) losses.push_back(result->loss);
  }
  return losses;
}

TEST(CudaBackendTest, TrainsWithoutPinnedMemoryAndSaysSo) {
  FakeGpu gpu(Cards(1));
  GpuFunctions functions = gpu.functions();
  const BackendFactory factory =
      MakeCudaFactory([&functions](const std::string&) {
        return absl::StatusOr<const GpuFunctions*>(&functions);
      });
  ReportedLines said;
  const std::vector<double> pinned = Losses(factory.create({})->get(), &said);
  EXPECT_THAT(said.lines(), ElementsAre());
  functions.cuda.HostRegister = [](auto...) { return cudaErrorNotSupported; };
  EXPECT_EQ(Losses(factory.create({})->get(), &said), pinned);
  EXPECT_THAT(said.lines(),
              ElementsAre(AllOf(HasSubstr("host memory is not pinned"),
                                HasSubstr("cuda:0: pin "),
                                HasSubstr("CUDA says a fake reason (801)"))));
}

TEST(CudaBackendTest, EveryCallThatFailsWhileItOpensIsTold) {
  FakeGpu gpu(Cards(1));
  const BackendFactory factory = FactoryOf(gpu);
  gpu.calls().Reset(0);
  ASSERT_THAT(factory.create({}), IsOk());
  int64_t n = 1;
  for (;; ++n) {
    gpu.calls().Reset(n);
    const absl::Status status = factory.create({}).status();
    if (status.ok()) break;
    EXPECT_THAT(std::string(status.message()), HasSubstr(" says "))
        << gpu.calls().failed();
  }
  // Cards, streams, cuDNN and cuBLAS; those after are of its end.
  EXPECT_GT(n, 8);
  gpu.calls().Reset(0);
  EXPECT_EQ(gpu.Leaks(), "");
}

}  // namespace
}  // namespace muster
