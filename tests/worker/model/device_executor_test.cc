#include "worker/model/device_executor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/fake_device.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Mode = CompileOptions::Mode;
using Stream = DeviceStreams::Stream;

constexpr int64_t kRows = 4;
constexpr float kLearningRate = 0.05f;
// Plain, captured, and launched twice.
constexpr int kSteps = 4;
// Each another order of the same work.
constexpr uint64_t kSeeds = 20;
// More than the calls, or the pieces of work, of a step of DroppingModel.
constexpr int kMostCalls = 1000;

std::vector<float> Copy(absl::Span<const float> values) {
  return {values.begin(), values.end()};
}

// A model that is trained, on a fake device or on the host.
class Trainee {
 public:
  Trainee(std::unique_ptr<Backend> backend, const ModelSpec& spec,
          bool use_graphs = true)
      : backend_(std::move(backend)) {
    CompileOptions options;
    options.backend = backend_.get();
    options.batch_size = kRows;
    options.use_graphs = use_graphs;
    options.say = [this](const std::string& line) { said_.push_back(line); };
    model_ = Compile(spec, options);
    EXPECT_THAT(model_->InitializeParameters(1), IsOk());
  }

  // A step, and plain SGD on the host.
  absl::StatusOr<CompiledModel::StepResult> Train(
      const Batch& batch, uint64_t seed, StepListener* listener = nullptr,
      ParameterGate* gate = nullptr) {
    auto result = model_->Step(batch, seed, listener, gate);
    if (result.ok()) Update();
    return result;
  }
  CompiledModel& model() { return *model_; }
  const std::vector<std::string>& said() const { return said_; }

 private:
  void Update() {
    for (int i = 0; i < static_cast<int>(model_->parameters().size()); ++i) {
      const bool is_state = model_->parameters()[i].kind() == STATE;
      const absl::Span<float> values = model_->parameter(i);
      for (size_t k = 0; k < values.size(); ++k) {
        const float gradient = model_->gradient(i)[k];
        values[k] += is_state ? gradient : -kLearningRate * gradient;
      }
    }
  }

  const std::unique_ptr<Backend> backend_;
  std::unique_ptr<CompiledModel> model_;
  std::vector<std::string> said_;
};

void ExpectSameGradients(CompiledModel& found, CompiledModel& wanted) {
  for (int i = 0; i < static_cast<int>(wanted.parameters().size()); ++i) {
    ASSERT_TRUE(found.gradient(i) == wanted.gradient(i))
        << wanted.parameters()[i].name();
  }
}

void ExpectSameSteps(Trainee* device, Trainee* host, int64_t elements,
                     int64_t classes) {
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step));
    const Batch batch = MakeBatch(kRows, elements, classes, step);
    const auto found = device->Train(batch, step);
    const auto wanted = host->Train(batch, step);
    ASSERT_THAT(found, IsOk());
    ASSERT_THAT(wanted, IsOk());
    EXPECT_EQ(found->loss, wanted->loss);
    EXPECT_EQ(found->correct, wanted->correct);
    ExpectSameGradients(device->model(), host->model());
  }
}

// kManyUsesModel with dropout.
ModelSpec DroppingModel() {
  std::string text = kManyUsesModel;
  const std::string flatten = "layer { name: \"flatten\" type: \"flatten\" }";
  const size_t place = text.find(flatten);
  EXPECT_NE(place, std::string::npos);
  text.insert(place + flatten.size(),
              "layer { name: 'drop1' type: 'dropout' } "
              "layer { name: 'drop2' type: 'dropout' } ");
  return ParseModel(text);
}

std::unique_ptr<FakeDevice> MakeDevice(const std::string& inner,
                                       uint64_t seed = 1) {
  return std::make_unique<FakeDevice>(MakeBackend(inner), seed);
}

class DeviceExecutorOrderTest
    : public testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(DeviceExecutorOrderTest, AnyOrderGivesTheBitsOfTheHost) {
  const auto& [inner, use_graphs] = GetParam();
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    auto backend = MakeDevice(inner, seed);
    FakeStreams* const streams = backend->streams();
    Trainee device(std::move(backend), DroppingModel(), use_graphs);
    Trainee host(MakeBackend(inner), DroppingModel());
    ExpectSameSteps(&device, &host, kManyUsesElements, kManyUsesClasses);
    EXPECT_EQ(streams->launches(), use_graphs ? kSteps - 1 : 0);
    EXPECT_THAT(device.said(), SizeIs(0));
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

TEST_P(DeviceExecutorZooTest, StepsHaveTheBitsOfTheHost) {
  const auto& [name, use_graphs] = GetParam();
  const ModelSpec spec = LoadZooModel(name).model();
  Trainee device(MakeDevice("cpu"), spec, use_graphs);
  Trainee host(MakeBackend("cpu"), spec);
  ExpectSameSteps(&device, &host, 28 * 28, 10);
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

class DeviceExecutorTest : public testing::TestWithParam<bool> {
 protected:
  DeviceExecutorTest() {
    auto backend = MakeDevice("ref");
    streams_ = backend->streams();
    device_ = std::make_unique<Trainee>(std::move(backend), DroppingModel(),
                                        /*use_graphs=*/GetParam());
  }
  absl::Status Train(StepListener* listener = nullptr,
                     ParameterGate* gate = nullptr) {
    return device_->Train(batch_, 1, listener, gate).status();
  }

  const Batch batch_ =
      MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, /*seed=*/1);
  FakeStreams* streams_ = nullptr;
  std::unique_ptr<Trainee> device_;
};

// Notes how much of a step was computed when it heard of the loss and of the
// first gradient; may end the step.
class EarlyListener : public StepListener {
 public:
  explicit EarlyListener(const FakeStreams* streams) : streams_(*streams) {}

  absl::Status OnForward(double /*loss*/) override {
    at_loss_ = streams_.computed();
    return outcome_;
  }
  void OnGradient(int /*parameter*/) override {
    if (at_gradient_ == 0) at_gradient_ = streams_.computed();
  }

  void EndStep(const absl::Status& outcome) { outcome_ = outcome; }
  int64_t at_loss() const { return at_loss_; }
  int64_t at_gradient() const { return at_gradient_; }

 private:
  const FakeStreams& streams_;
  absl::Status outcome_;
  int64_t at_loss_ = 0;
  int64_t at_gradient_ = 0;
};

TEST_P(DeviceExecutorTest, TellsOfTheLossAndAGradientWhileTheRestIsComputed) {
  // What can be copied is.
  streams_->SetWeight(Stream::kCompute, 0);
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step));
    const int64_t before = streams_->computed();
    EarlyListener listener(streams_);
    ASSERT_THAT(Train(&listener), IsOk());
    EXPECT_GT(listener.at_loss(), before);
    if (GetParam() && step > 0) {
      // A launch is awaited whole.
      EXPECT_EQ(listener.at_gradient(), streams_->computed());
      continue;
    }
    EXPECT_GT(listener.at_gradient(), listener.at_loss());
    // At least the backward passes of the other dense layers, the pool, the
    // norm and the convolution.
    EXPECT_LT(listener.at_gradient(), streams_->computed() - 5);
  }
}

TEST_P(DeviceExecutorTest, AnErrorOfTheListenerLeavesNothingInTheStreams) {
  for (int step = 0; step < kSteps; ++step) {
    EarlyListener listener(streams_);
    listener.EndStep(absl::AbortedError("fenced: gone"));
    EXPECT_EQ(Train(&listener), absl::AbortedError("fenced: gone"));
    const int64_t computed = streams_->computed();
    EXPECT_THAT(streams_->Synchronize(), IsOk());
    EXPECT_EQ(streams_->computed(), computed);
    EXPECT_THAT(Train(), IsOk());
  }
}

// Fails the n-th call of a step, for every n.
TEST_P(DeviceExecutorTest, AnyCallThatFailsEndsItsStepOnly) {
  Trainee host(MakeBackend("ref"), DroppingModel());
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch =
        MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, step);
    int failed = 0;
    for (bool has_failed = true; has_failed && failed < kMostCalls; ++failed) {
      SCOPED_TRACE(absl::StrCat("step ", step, ", call ", failed + 1));
      streams_->FailCall(failed + 1);
      const auto result = device_->model().Step(batch, step);
      // A call that fails in a capture only ends that.
      has_failed = !result.ok();
      if (has_failed) {
        ASSERT_THAT(result, StatusIs(absl::StatusCode::kInternal,
                                     HasSubstr("the fake fails")));
      }
      streams_->FailCall(0);
    }
    EXPECT_GT(failed, 3);
    EXPECT_LT(failed, kMostCalls);
    ASSERT_THAT(device_->Train(batch, step), IsOk());
    ASSERT_THAT(host.Train(batch, step), IsOk());
    ExpectSameGradients(device_->model(), host.model());
  }
}

TEST_P(DeviceExecutorTest, ADeviceThatFailsSaysSoEachTime) {
  int failed = 0;
  for (bool has_failed = true; has_failed && failed < kMostCalls; ++failed) {
    SCOPED_TRACE(absl::StrCat("work ", failed + 1));
    auto backend = MakeDevice("ref", failed);
    FakeStreams* const streams = backend->streams();
    Trainee device(std::move(backend), DroppingModel(), GetParam());
    for (int step = 0; step < failed % kSteps; ++step) {
      ASSERT_THAT(device.Train(batch_, step), IsOk());
    }
    streams->FailWork(failed + 1);
    const absl::Status status = device.Train(batch_, 1).status();
    has_failed = !status.ok();
    if (!has_failed) continue;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                                 HasSubstr("the fake fails")));
    EXPECT_EQ(device.Train(batch_, 1).status(), status);
  }
  EXPECT_GT(failed, 20);
  EXPECT_LT(failed, kMostCalls);
}

INSTANTIATE_TEST_SUITE_P(Graphs, DeviceExecutorTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "graphs" : "plain";
                         });

TEST(DeviceExecutorCreationTest, AnyCallThatFailsIsTheErrorOfTheCreation) {
  const auto backend = MakeDevice("ref");
  CompileOptions options;
  options.backend = backend.get();
  options.batch_size = kRows;
  int failed = 0;
  for (bool has_failed = true; has_failed && failed < kMostCalls; ++failed) {
    backend->streams()->FailCall(failed + 1);
    const auto model = CompiledModel::Create(DroppingModel(), options);
    has_failed = !model.ok();
    if (has_failed) {
      ASSERT_THAT(model, StatusIs(absl::StatusCode::kInternal,
                                  HasSubstr("the fake fails")));
    }
  }
  EXPECT_GT(failed, 10);
  EXPECT_LT(failed, kMostCalls);
}

TEST(DeviceExecutorInputTest, TheGradientOfTheInputComesToTheHost) {
  const auto backend = MakeDevice("ref");
  const auto host_backend = MakeBackend("ref");
  CompileOptions options;
  options.backend = backend.get();
  options.batch_size = kRows;
  options.input_gradient = true;
  const auto device = Compile(DroppingModel(), options);
  options.backend = host_backend.get();
  const auto host = Compile(DroppingModel(), options);
  ASSERT_THAT(device->InitializeParameters(1), IsOk());
  ASSERT_THAT(host->InitializeParameters(1), IsOk());
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch =
        MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, step);
    ASSERT_THAT(device->Step(batch, step), IsOk());
    ASSERT_THAT(host->Step(batch, step), IsOk());
    EXPECT_TRUE(device->input_gradient_as<float>() ==
                host->input_gradient_as<float>())
        << "step " << step;
  }
}

TEST(DeviceExecutorCreationTest, RefusesOtherTypesThanFloat32) {
  const auto backend = MakeDevice("ref_float64");
  CompileOptions options;
  options.backend = backend.get();
  options.batch_size = kRows;
  EXPECT_THAT(CompiledModel::Create(DroppingModel(), options),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("float64")));
}

class DeviceExecutorGraphTest : public testing::Test {
 protected:
  DeviceExecutorGraphTest() {
    auto backend = MakeDevice("ref");
    streams_ = backend->streams();
    device_ = std::make_unique<Trainee>(std::move(backend), DroppingModel());
  }

  const Batch batch_ =
      MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, /*seed=*/1);
  FakeStreams* streams_ = nullptr;
  std::unique_ptr<Trainee> device_;
};

TEST_F(DeviceExecutorGraphTest, ACaptureThatFailsIsSaidOnce) {
  Trainee host(MakeBackend("ref"), DroppingModel());
  ASSERT_THAT(device_->Train(batch_, 0), IsOk());
  ASSERT_THAT(host.Train(batch_, 0), IsOk());
  streams_->FailCaptures();
  for (int step = 1; step < kSteps; ++step) {
    ASSERT_THAT(device_->Train(batch_, step), IsOk());
    ASSERT_THAT(host.Train(batch_, step), IsOk());
    ExpectSameGradients(device_->model(), host.model());
  }
  EXPECT_EQ(streams_->launches(), 0);
  ASSERT_THAT(device_->said(), SizeIs(1));
  EXPECT_THAT(device_->said()[0], HasSubstr("cannot be captured"));
}

TEST_F(DeviceExecutorGraphTest, AnyCallThatFailsInACaptureIsNoError) {
  Trainee host(MakeBackend("ref"), DroppingModel());
  ASSERT_THAT(host.Train(batch_, 0), IsOk());
  ASSERT_THAT(host.Train(batch_, 1), IsOk());
  int in_capture = 0;
  bool is_captured = false;
  for (int call = 1; !is_captured && call < kMostCalls; ++call) {
    SCOPED_TRACE(absl::StrCat("call ", call));
    auto backend = MakeDevice("ref", call);
    FakeStreams* const streams = backend->streams();
    Trainee device(std::move(backend), DroppingModel());
    ASSERT_THAT(device.Train(batch_, 0), IsOk());
    streams->FailCall(call);
    if (!device.Train(batch_, 1).ok()) continue;
    ExpectSameGradients(device.model(), host.model());
    is_captured = device.said().empty();
    in_capture += is_captured ? 0 : 1;
  }
  EXPECT_TRUE(is_captured);
  EXPECT_GT(in_capture, 20);
}

TEST_F(DeviceExecutorGraphTest, ParametersAreReadWhereTheyAreAfterACapture) {
  for (int step = 0; step < kSteps; ++step) {
    ASSERT_THAT(device_->Train(batch_, step), IsOk());
  }
  CompiledModel& model = device_->model();
  ASSERT_THAT(model.Step(batch_, 1), IsOk());
  std::vector<std::vector<float>> own;
  std::vector<AlignedBuffer> elsewhere;
  std::vector<const float*> places;
  for (int i = 0; i < static_cast<int>(model.parameters().size()); ++i) {
    own.push_back(Copy(model.gradient(i)));
    elsewhere.emplace_back(model.parameter(i).size() * sizeof(float));
    std::copy(model.parameter(i).begin(), model.parameter(i).end(),
              elsewhere.back().as<float>());
    for (float& value : model.parameter(i)) value += 0.25f;
    places.push_back(elsewhere.back().as<float>());
  }
  model.ReadParametersFrom(places);
  ASSERT_THAT(model.Step(batch_, 1), IsOk());
  for (int i = 0; i < static_cast<int>(model.parameters().size()); ++i) {
    EXPECT_EQ(Copy(model.gradient(i)), own[i]) << i;
  }
  model.ReadParametersFrom({});
  ASSERT_THAT(model.Step(batch_, 1), IsOk());
  EXPECT_NE(Copy(model.gradient(0)), own[0]);
}

TEST_F(DeviceExecutorGraphTest, AnEvaluationIsNotCaptured) {
  const auto backend = MakeDevice("ref");
  const auto host_backend = MakeBackend("ref");
  CompileOptions options;
  options.backend = backend.get();
  options.batch_size = kRows;
  options.mode = Mode::kEvaluate;
  const auto device = Compile(DroppingModel(), options);
  options.backend = host_backend.get();
  const auto host = Compile(DroppingModel(), options);
  ASSERT_THAT(device->InitializeParameters(1), IsOk());
  ASSERT_THAT(host->InitializeParameters(1), IsOk());
  for (const int64_t rows : {kRows, int64_t{1}, kRows - 1, kRows}) {
    const Batch batch =
        MakeBatch(rows, kManyUsesElements, kManyUsesClasses, rows);
    const auto found = device->Evaluate(batch);
    const auto wanted = host->Evaluate(batch);
    ASSERT_THAT(found, IsOk());
    EXPECT_EQ(found->loss, wanted->loss);
    EXPECT_EQ(found->correct, wanted->correct);
  }
  EXPECT_EQ(backend->streams()->launches(), 0);
}

}  // namespace
}  // namespace muster
