// A device that does its work in any order that streams and events allow gives
// the bits of the host.
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/executor/trainee.h"
#include "worker/backend/device_mean.h"
#include "worker/tower/mean.h"

namespace muster {
namespace {

using ::testing::SizeIs;

constexpr int64_t kRows = Trainee::kRows;
// Plain, captured for each buffer, and launched twice.
constexpr int kSteps = 5;
// Each another order of the same work.
constexpr uint64_t kSeeds = 9;
constexpr int kMembers = 3;

// Keeps the loss that it hears.
class LossListener : public StepListener {
 public:
  absl::Status OnForward(double loss) override {
    loss_ = loss;
    return absl::OkStatus();
  }
  void OnGradient(int /*parameter*/) override {}
  double loss() const { return loss_; }

 private:
  double loss_ = 0;
};

// Whether a step is told which batch comes after it.
enum class Foresight { kNone, kNextBatch };

void ExpectSameSteps(Trainee* device, Trainee* host, int64_t elements,
                     int64_t classes, Foresight foresight) {
  Batch next = MakeBatch(kRows, elements, classes, /*seed=*/0);
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step));
    const Batch batch =
        std::exchange(next, MakeBatch(kRows, elements, classes, step + 1));
    next.id = step + 1;
    SeededBatch known;
    if (foresight == Foresight::kNextBatch) {
      known = {&next, static_cast<uint64_t>(step + 1)};
    }
    LossListener heard;
    LossListener wanted_heard;
    const auto found =
        device->Train(batch, step, &heard, /*gate=*/nullptr, known);
    const auto wanted = host->Train(batch, step, &wanted_heard);
    ASSERT_THAT(found, IsOk());
    ASSERT_THAT(wanted, IsOk());
    EXPECT_EQ(heard.loss(), wanted_heard.loss());
    EXPECT_EQ(found->loss, wanted->loss);
    EXPECT_EQ(found->correct, wanted->correct);
    ExpectSameGradients(device->model(), host->model());
  }
}

class DeviceExecutorOrderTest
    : public testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(DeviceExecutorOrderTest, AnyOrderGivesTheBitsOfTheHost) {
  const auto& [inner, use_graphs] = GetParam();
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    auto backend = MakeDevice(inner, seed);
    FakeStreams* const streams = backend->streams();
    Trainee device(std::move(backend), WideModel(), use_graphs);
    Trainee host(MakeBackend(inner), WideModel());
    ExpectSameSteps(&device, &host, kManyUsesElements, kManyUsesClasses,
                    seed % 2 == 0 ? Foresight::kNone : Foresight::kNextBatch);
    EXPECT_EQ(streams->launches(),
              use_graphs ? kWideSegments * (kSteps - 1) : 0);
    EXPECT_THAT(device.said(), SizeIs(0));
  }
}

// Several models of one spec that read the parameters of the first.
class Members {
 public:
  // With a mean that the devices make; else the host makes it.
  Members(std::vector<std::unique_ptr<Backend>> backends, bool use_graphs)
      : backends_(std::move(backends)) {
    if (backends_.front()->streams() != nullptr) {
      std::vector<Backend*> members;
      for (const auto& backend : backends_) members.push_back(backend.get());
      mean_ = *members.front()->CreateMean(members);
    }
    for (const auto& backend : backends_) {
      CompileOptions options;
      options.backend = backend.get();
      options.batch_size = kRows;
      options.use_graphs = use_graphs;
      options.mean = mean_.get();
      options.mean_member = static_cast<int>(models_.size());
      options.keeps_mean = models_.empty();
      if (!models_.empty()) options.parameters_of = models_.front().get();
      models_.push_back(Compile(WideModel(), options));
    }
    EXPECT_THAT(models_.front()->InitializeParameters(1), IsOk());
  }

  // A step of each on a thread of its own, and an update by their mean.
  void Train(uint64_t step) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < models_.size(); ++i) {
      threads.emplace_back([this, step, i] {
        const Batch batch = MakeBatch(kRows, kManyUsesElements,
                                      kManyUsesClasses, 10 * step + i);
        EXPECT_THAT(models_[i]->Step(batch, step), IsOk());
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (mean_ == nullptr) WriteMeans();
    Update(models_.front().get());
  }
  CompiledModel& first() { return *models_.front(); }

 private:
  // Moving averages are the first model's.
  void WriteMeans() {
    for (int i = 0; i < static_cast<int>(first().parameters().size()); ++i) {
      if (first().parameters()[i].kind() == STATE) continue;
      std::vector<absl::Span<const float>> gradients;
      for (const auto& model : models_) {
        gradients.push_back(model->gradient(i));
      }
      WriteMean(gradients, first().mutable_gradient(i));
    }
  }

  const std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<DeviceMean> mean_;
  std::vector<std::unique_ptr<CompiledModel>> models_;
};

TEST_P(DeviceExecutorOrderTest, AMeanHasTheBitsOfTheHosts) {
  const auto& [inner, use_graphs] = GetParam();
  for (uint64_t seed = 0; seed < kSeeds; seed += kMembers) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::vector<std::unique_ptr<Backend>> devices;
    std::vector<std::unique_ptr<Backend>> hosts;
    for (int i = 0; i < kMembers; ++i) {
      devices.push_back(MakeDevice(inner, seed + i));
      hosts.push_back(MakeBackend(inner));
    }
    Members device(std::move(devices), use_graphs);
    Members host(std::move(hosts), use_graphs);
    for (int step = 0; step < kSteps; ++step) {
      device.Train(step);
      host.Train(step);
      ExpectSameGradients(device.first(), host.first());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceExecutorOrderTest,
                         testing::Combine(testing::Values("ref", "cpu"),
                                          testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) ? "_graphs"
                                                           : "_plain");
                         });

class DeviceExecutorZooTest
    : public testing::TestWithParam<std::tuple<std::string, bool>> {};

// Up to the first large dense layer (mnist_cnn; mlp begins with it), to the
// loss, to its gradient where that is not the last, to the end.
int SegmentsOf(const std::string& model) {
  return model == "mnist_cnn" ? 4 : 2;
}

TEST_P(DeviceExecutorZooTest, StepsHaveTheBitsOfTheHost) {
  const auto& [name, use_graphs] = GetParam();
  const ModelSpec spec = LoadZooModel(name).model();
  auto backend = MakeDevice("cpu");
  FakeStreams* const streams = backend->streams();
  Trainee device(std::move(backend), spec, use_graphs);
  Trainee host(MakeBackend("cpu"), spec);
  ExpectSameSteps(&device, &host, 28 * 28, 10, Foresight::kNextBatch);
  EXPECT_EQ(streams->launches(),
            use_graphs ? SegmentsOf(name) * (kSteps - 1) : 0);
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, DeviceExecutorZooTest,
    testing::Combine(testing::Values("mnist_cnn", "softmax_regression", "mlp",
                                     "inception_small"),
                     testing::Bool()),
    [](const auto& info) {
      return std::get<0>(info.param) +
             (std::get<1>(info.param) ? "_graphs" : "_plain");
    });

}  // namespace
}  // namespace muster
