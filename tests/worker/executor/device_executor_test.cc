#include "worker/executor/device_executor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/executor/trainee.h"
#include "worker/backend/device_mean.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Mode = CompileOptions::Mode;
using Stream = DeviceStreams::Stream;

constexpr int64_t kRows = Trainee::kRows;
// Plain, captured for each buffer, and launched twice.
constexpr int kSteps = 5;
// More than the calls, or the pieces of work, of a step of WideModel.
constexpr int kMostCalls = 1000;

std::vector<float> Copy(absl::Span<const float> values) {
  return {values.begin(), values.end()};
}

class DeviceExecutorTest : public testing::TestWithParam<bool> {
 protected:
  DeviceExecutorTest() {
    auto backend = MakeDevice("ref");
    streams_ = backend->streams();
    device_ = std::make_unique<Trainee>(std::move(backend), WideModel(),
                                        /*use_graphs=*/GetParam());
  }
  absl::Status Train(StepListener* listener = nullptr) {
    return device_->Train(batch_, 1, listener).status();
  }

  const Batch batch_ =
      MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, /*seed=*/1);
  FakeStreams* streams_ = nullptr;
  std::unique_ptr<Trainee> device_;
};

int IndexOf(CompiledModel& model, absl::string_view parameter) {
  for (int i = 0; i < static_cast<int>(model.parameters().size()); ++i) {
    if (model.parameters()[i].name() == parameter) return i;
  }
  ADD_FAILURE() << "no " << parameter;
  return -1;
}

// Notes how much of a step was computed when it heard of the loss and of a
// gradient; may end the step.
class EarlyListener : public StepListener {
 public:
  EarlyListener(const FakeStreams* streams, int parameter)
      : streams_(*streams), parameter_(parameter) {}

  absl::Status OnForward(double /*loss*/) override {
    EXPECT_EQ(at_gradient_, 0) << "a gradient before the loss";
    at_loss_ = streams_.computed();
    return outcome_;
  }
  void OnGradient(int parameter) override {
    EXPECT_GT(at_loss_, 0) << "a gradient before the loss";
    if (parameter == parameter_) at_gradient_ = streams_.computed();
  }

  void EndStep(const absl::Status& outcome) { outcome_ = outcome; }
  int64_t at_loss() const { return at_loss_; }
  int64_t at_gradient() const { return at_gradient_; }

 private:
  const FakeStreams& streams_;
  const int parameter_;
  absl::Status outcome_;
  int64_t at_loss_ = 0;
  int64_t at_gradient_ = 0;
};

TEST_P(DeviceExecutorTest, TellsOfTheLossAndAGradientWhileTheRestIsComputed) {
  // All that can be copied is.
  streams_->SetWeight(Stream::kCompute, 0);
  const int middle = IndexOf(device_->model(), "middle/weights");
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step));
    const int64_t before = streams_->computed();
    EarlyListener listener(streams_, middle);
    ASSERT_THAT(Train(&listener), IsOk());
    EXPECT_GT(listener.at_loss(), before);
    // The backward passes of two dense layers.
    EXPECT_GT(listener.at_gradient(), listener.at_loss() + 2);
    // At least the backward passes of the first dense layer, the dropouts, the
    // pool, the norm and the convolution.
    EXPECT_LT(listener.at_gradient(), streams_->computed() - 5);
  }
}

TEST_P(DeviceExecutorTest, AnErrorOfTheListenerLeavesNothingInTheStreams) {
  for (int step = 0; step < kSteps; ++step) {
    EarlyListener listener(streams_, /*parameter=*/0);
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
  Trainee host(MakeBackend("ref"), WideModel());
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch =
        MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, step);
    int failed = 0;
    for (bool has_failed = true; has_failed && failed < kMostCalls; ++failed) {
      SCOPED_TRACE(absl::StrCat("step ", step, ", call ", failed + 1));
      streams_->FailCall(failed + 1);
      const auto result = device_->model().Step(
          batch, step,
          {/*listener=*/nullptr, /*gate=*/nullptr, {&batch_, /*seed=*/9}});
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
    Trainee device(std::move(backend), WideModel(), GetParam());
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

// How many copies to the device a step had put when it asked for its first
// parameter, and when it told of its loss.
class CopyCounts : public ParameterGate, public StepListener {
 public:
  explicit CopyCounts(const FakeStreams* streams)
      : streams_(*streams), begun_(streams->copies_to_device()) {}

  absl::Status BeforeUse(int /*parameter*/) override {
    if (at_first_use_ < 0) at_first_use_ = copies();
    return absl::OkStatus();
  }
  absl::Status OnForward(double /*loss*/) override {
    at_loss_ = copies();
    return absl::OkStatus();
  }
  void OnGradient(int /*parameter*/) override {}

  int64_t at_first_use() const { return at_first_use_; }
  int64_t at_loss() const { return at_loss_; }
  int64_t copies() const { return streams_.copies_to_device() - begun_; }

 private:
  const FakeStreams& streams_;
  const int64_t begun_;
  int64_t at_first_use_ = -1;
  int64_t at_loss_ = -1;
};

TEST_P(DeviceExecutorTest, TheNextBatchGoesWhileAStepComputes) {
  Batch batches[2];
  int64_t steady = 0;
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step));
    Batch& next = batches[(step + 1) % 2];
    if (step == 0) batches[0] = MakeBatch(kRows, kManyUsesElements, 1, 0);
    next = MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, step + 1);
    next.id = step + 1;
    CopyCounts counts(streams_);
    ASSERT_THAT(device_->Train(batches[step % 2], step, &counts, &counts,
                               {&next, static_cast<uint64_t>(step + 1)}),
                IsOk());
    // The first one did not know of its own.
    EXPECT_EQ(counts.at_first_use(), step == 0 ? 1 : 0);
    EXPECT_EQ(counts.at_loss(), counts.copies());
    if (step == 0) steady = counts.copies() - 1;
    EXPECT_EQ(counts.copies(), step == 0 ? steady + 1 : steady);
  }
}

// Another object with the id is the same batch; the rest are not.
TEST_P(DeviceExecutorTest, AStepIsOfItsOwnBatchWhateverWasSaidBefore) {
  Trainee host(MakeBackend("ref"), WideModel());
  Batch told = MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, 100);
  told.id = 100;
  for (int step = 0; step < 2 * kSteps; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step));
    Batch batch = MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, step);
    const int kind = step % 4;
    // Another id, none, the same with another seed; the batch itself.
    batch.id = kind == 0 ? step + 1 : 0;
    if (kind >= 2) {
      batch = MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, 100);
      batch.id = 100;
    }
    const uint64_t seed = kind == 2 ? 8 : 9;
    ASSERT_THAT(device_->model().Step(batch, seed,
                                      {nullptr, nullptr, {&told, /*seed=*/9}}),
                IsOk());
    ASSERT_THAT(host.model().Step(batch, seed), IsOk());
    ExpectSameGradients(device_->model(), host.model());
  }
}

TEST_P(DeviceExecutorTest, ANextBatchOfAnotherSizeIsItsOwnStepsError) {
  Batch small = MakeBatch(kRows + 1, kManyUsesElements, kManyUsesClasses, 1);
  small.id = 1;
  ASSERT_THAT(device_->Train(batch_, 1, nullptr, nullptr, {&small, 2}), IsOk());
  EXPECT_THAT(device_->Train(small, 2),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Train(), IsOk());
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
    const auto model = CompiledModel::Create(WideModel(), options);
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
  const auto device = Compile(WideModel(), options);
  options.backend = host_backend.get();
  const auto host = Compile(WideModel(), options);
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

// Its memory goes, and the device would still read and write it.
TEST(DeviceExecutorInputTest, ANextBatchOnItsWayArrivesBeforeTheModelIsGone) {
  const auto backend = MakeDevice("ref");
  FakeStreams* const streams = backend->streams();
  streams->SetWeight(Stream::kToDevice, 0);
  CompileOptions options;
  options.backend = backend.get();
  options.batch_size = kRows;
  auto model = Compile(WideModel(), options);
  ASSERT_THAT(model->InitializeParameters(1), IsOk());
  const Batch batch =
      MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, /*seed=*/1);
  ASSERT_THAT(model->Step(batch, 1, {nullptr, nullptr, {&batch, 2}}), IsOk());
  model.reset();
  EXPECT_THAT(streams->Synchronize(), IsOk());
}

TEST(DeviceExecutorCreationTest, RefusesOtherTypesThanFloat32) {
  const auto backend = MakeDevice("ref_float64");
  CompileOptions options;
  options.backend = backend.get();
  options.batch_size = kRows;
  EXPECT_THAT(CompiledModel::Create(WideModel(), options),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("float64")));
}

class DeviceExecutorGraphTest : public testing::Test {
 protected:
  DeviceExecutorGraphTest() {
    auto backend = MakeDevice("ref");
    streams_ = backend->streams();
    device_ = std::make_unique<Trainee>(std::move(backend), WideModel());
  }

  const Batch batch_ =
      MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, /*seed=*/1);
  FakeStreams* streams_ = nullptr;
  std::unique_ptr<Trainee> device_;
};

// How many graphs were launched before each parameter was asked for.
class LaunchGate : public ParameterGate {
 public:
  LaunchGate(const FakeStreams* streams, size_t num_parameters)
      : streams_(*streams),
        before_(streams->launches()),
        launched_(num_parameters, -1) {}

  absl::Status BeforeUse(int parameter) override {
    EXPECT_EQ(launched_[parameter], -1) << "asked twice";
    launched_[parameter] = streams_.launches() - before_;
    return absl::OkStatus();
  }
  const std::vector<int>& launched() const { return launched_; }

 private:
  const FakeStreams& streams_;
  const int before_;
  std::vector<int> launched_;
};

TEST_F(DeviceExecutorGraphTest, ComputesWhileLaterParametersAreOnTheirWay) {
  CompiledModel& model = device_->model();
  for (int step = 0; step < kSteps; ++step) {
    LaunchGate gate(streams_, model.parameters().size());
    ASSERT_THAT(device_->Train(batch_, 1, /*listener=*/nullptr, &gate), IsOk());
    if (step == 0) continue;
    EXPECT_EQ(gate.launched()[IndexOf(model, "conv/weights")], 0);
    EXPECT_EQ(gate.launched()[IndexOf(model, "first/weights")], 1);
    EXPECT_EQ(gate.launched()[IndexOf(model, "middle/weights")], 2);
  }
}

TEST_F(DeviceExecutorGraphTest,
       WithAMeanAllParametersAreThereBeforeItComputes) {
  auto backend = MakeDevice("ref");
  const FakeStreams& streams = *backend->streams();
  const auto mean = backend->CreateMean({backend.get()});
  ASSERT_THAT(mean, IsOk());
  Trainee device(std::move(backend), WideModel(), /*use_graphs=*/true,
                 mean->get());
  CompiledModel& model = device.model();
  for (int step = 0; step < kSteps; ++step) {
    LaunchGate gate(&streams, model.parameters().size());
    ASSERT_THAT(device.Train(batch_, 1, /*listener=*/nullptr, &gate), IsOk());
    EXPECT_EQ(gate.launched()[IndexOf(model, "middle/weights")], 0);
    EXPECT_EQ(gate.launched()[IndexOf(model, "logits/bias")], 0);
    EXPECT_EQ(streams.launches(), kWideSegments * step);
  }
}

TEST_F(DeviceExecutorGraphTest, ACaptureThatFailsIsSaidOnce) {
  Trainee host(MakeBackend("ref"), WideModel());
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
  Trainee host(MakeBackend("ref"), WideModel());
  ASSERT_THAT(host.Train(batch_, 0), IsOk());
  ASSERT_THAT(host.Train(batch_, 1), IsOk());
  int in_capture = 0;
  bool is_captured = false;
  for (int call = 1; !is_captured && call < kMostCalls; ++call) {
    SCOPED_TRACE(absl::StrCat("call ", call));
    auto backend = MakeDevice("ref", call);
    FakeStreams* const streams = backend->streams();
    Trainee device(std::move(backend), WideModel());
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
  const auto device = Compile(WideModel(), options);
  options.backend = host_backend.get();
  const auto host = Compile(WideModel(), options);
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
