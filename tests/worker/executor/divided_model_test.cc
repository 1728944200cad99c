// Models whose layers are on several devices, against the same on one.
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/fake_device.h"
#include "tests/worker/executor/trainee.h"
#include "tests/worker/model/test_models.h"
#include "worker/layer/counter_random.h"

namespace muster {
namespace {

using Mode = CompileOptions::Mode;

constexpr int64_t kRows = 4;
constexpr uint64_t kCiCuts = 3;
constexpr uint64_t kSoakCuts = 20;
constexpr int kMostLanes = 3;

// By layer, its device, as `seed` cuts the model: in two parts, in three, or
// each layer for itself.
std::vector<int> Cut(const ModelSpec& spec, uint64_t seed) {
  const CounterRandom random(seed, "cuts");
  const auto layers = static_cast<uint64_t>(spec.layer_size());
  std::vector<int> devices(layers, 0);
  for (uint64_t i = 0; i < layers; ++i) {
    if (seed % 3 == 2) {
      devices[i] = static_cast<int>(random.Bits(i) % kMostLanes);
      continue;
    }
    for (uint64_t cut = 0; cut <= seed % 3; ++cut) {
      devices[i] += i > random.Bits(cut) % (layers - 1) ? 1 : 0;
    }
  }
  return devices;
}

// The names of a model's backends, in turns.
using Backends = std::vector<std::string>;

// One whose streams do their work as `seed` says, if it has any.
std::unique_ptr<Backend> MakeLane(const std::string& name, uint64_t seed) {
  absl::string_view inner = name;
  if (!absl::ConsumePrefix(&inner, "device_of_")) return MakeBackend(name);
  return MakeDevice(std::string(inner), seed);
}

// A model, for training and as it evaluates.
class Model {
 public:
  // `devices`: by layer; empty for one device.
  Model(const ModelSpec& spec, const std::vector<int>& devices,
        const Backends& backends = {"cpu"}, uint64_t seed = 1)
      : spec_(spec), devices_(devices) {
    for (size_t i = 0; i < kMostLanes; ++i) {
      backends_.push_back(MakeLane(backends[i % backends.size()], seed + i));
    }
    CompileOptions options = Options();
    training_ = Compile(spec, options);
    EXPECT_THAT(training_->InitializeParameters(/*seed=*/1), IsOk());
    options.parameters_of = training_.get();
    options.mode = Mode::kEvaluate;
    evaluation_ = Compile(spec, options);
  }

  CompiledModel& training() { return *training_; }
  CompiledModel& evaluation() { return *evaluation_; }
  // Null: it computes in the host's memory.
  FakeStreams* streams(int device) {
    return static_cast<FakeStreams*>(backends_[device]->streams());
  }
  void Update() {
    for (int i = 0; i < num_parameters(); ++i) {
      if (training_->parameters()[i].kind() != TRAINABLE) continue;
      const absl::Span<const float> gradient = training_->gradient(i);
      const absl::Span<float> values = training_->parameter(i);
      for (size_t k = 0; k < values.size(); ++k) {
        values[k] -= 0.125f * gradient[k];
      }
    }
  }
  int num_parameters() const {
    return static_cast<int>(training_->parameters().size());
  }
  // The training's.
  CompileOptions Options() {
    CompileOptions options;
    options.backend = backends_.front().get();
    options.batch_size = kRows;
    if (devices_.empty()) return options;
    for (int i = 1; i < kMostLanes; ++i) {
      options.more_backends.push_back(backends_[i].get());
    }
    options.device_of = [this](absl::string_view layer, int part) {
      for (int i = 0; i < spec_.layer_size(); ++i) {
        if (spec_.layer(i).name() != layer) continue;
        return part == CompileOptions::kWholeLayer ? devices_[i] : part;
      }
      return -1;
    };
    return options;
  }

 private:
  const ModelSpec spec_;
  const std::vector<int> devices_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<CompiledModel> training_;
  std::unique_ptr<CompiledModel> evaluation_;
};

Batch BatchFor(const ModelSpec& spec, uint64_t seed) {
  int64_t elements = 1;
  for (const int64_t size : spec.input_shape()) elements *= size;
  return spec.name() == "linear_regression"
             ? MakeTargetBatch(kRows, elements, /*num_targets=*/1, seed)
             : MakeBatch(kRows, elements, /*classes=*/10, seed);
}

class DividedModelTest : public testing::TestWithParam<std::string> {
 protected:
  // Cut as each seed from `first` on says.
  void ExpectSameBits(const Backends& backends, uint64_t first) {
    const bool is_soak = std::getenv("MUSTER_SOAK") != nullptr;
    one_ = std::make_unique<Model>(spec_, std::vector<int>());
    for (uint64_t seed = first; seed < (is_soak ? kSoakCuts : kCiCuts);
         ++seed) {
      SCOPED_TRACE(testing::Message() << "cut by seed " << seed);
      divided_ =
          std::make_unique<Model>(spec_, Cut(spec_, seed), backends, seed);
      ASSERT_THAT(one_->training().InitializeParameters(/*seed=*/1), IsOk());
      for (uint64_t step = 1; step <= 2; ++step) {
        ExpectSameStep(10 * seed + step);
      }
      ExpectSameEvaluation();
    }
  }
  void ExpectSameStep(uint64_t seed) {
    const Batch batch = BatchFor(spec_, seed);
    const auto wanted = one_->training().Step(batch, seed);
    const auto found = divided_->training().Step(batch, seed);
    ASSERT_THAT(wanted, IsOk());
    ASSERT_THAT(found, IsOk());
    EXPECT_EQ(found->loss, wanted->loss);
    EXPECT_EQ(found->correct, wanted->correct);
    for (int i = 0; i < one_->num_parameters(); ++i) {
      EXPECT_EQ(divided_->training().gradient(i), one_->training().gradient(i))
          << one_->training().parameters()[i].name();
    }
    one_->Update();
    divided_->Update();
  }
  void ExpectSameEvaluation() {
    const Batch batch = BatchFor(spec_, /*seed=*/9);
    const auto wanted = one_->evaluation().Evaluate(batch);
    const auto found = divided_->evaluation().Evaluate(batch);
    ASSERT_THAT(wanted, IsOk());
    ASSERT_THAT(found, IsOk());
    EXPECT_EQ(found->loss, wanted->loss);
    EXPECT_EQ(divided_->evaluation().outputs(), one_->evaluation().outputs());
  }

  const ModelSpec spec_ = LoadZooModel(GetParam()).model();
  std::unique_ptr<Model> one_;
  std::unique_ptr<Model> divided_;
};

TEST_P(DividedModelTest, HasTheBitsOfOneDevice) {
  ExpectSameBits({"cpu"}, /*first=*/0);
}

TEST_P(DividedModelTest, DevicesWithMemoryOfTheirOwnHaveTheBitsOfOne) {
  // Each layer for itself.
  ExpectSameBits({"device_of_cpu"}, /*first=*/2);
}

INSTANTIATE_TEST_SUITE_P(Zoo, DividedModelTest,
                         testing::Values("mnist_cnn", "softmax_regression",
                                         "mlp", "inception_small", "resnet20",
                                         "linear_regression"),
                         [](const auto& info) { return info.param; });

// The gradient of a split layer's source is a sum over parts, each rounded: a
// few 2^-24 of it, which later sums make no larger than this.
constexpr float kTolerance = 1e-5f;

// conv2 of mnist_cnn has a source with a gradient, and dense1 most parameters.
class SplitLayersModelTest : public testing::Test {
 protected:
  static ModelSpec Spec(int parts) {
    ModelSpec spec = LoadZooModel("mnist_cnn").model();
    for (LayerSpec& layer : *spec.mutable_layer()) {
      if (layer.name() != "conv2" && layer.name() != "dense1") continue;
      if (parts > 1) layer.mutable_split()->set_parts(parts);
      Attr* const penalty = layer.add_attr();
      penalty->set_name("l2");
      penalty->set_f(0.01);
    }
    return spec;
  }
  static std::vector<int> OnTheFirst() {
    return std::vector<int>(Spec(1).layer_size(), 0);
  }

  // Parts on lanes against parts on one device, which computes as `wanted`.
  void ExpectSameSteps(const Backends& backends, const std::string& wanted) {
    Model one(Spec(2), {}, {wanted});
    Model lanes(Spec(2), OnTheFirst(), backends);
    for (int step = 1; step <= 3; ++step) {
      const auto wanted_step = one.training().Step(batch_, step);
      const auto found = lanes.training().Step(batch_, step);
      ASSERT_THAT(wanted_step, IsOk());
      ASSERT_THAT(found, IsOk());
      EXPECT_EQ(found->loss, wanted_step->loss);
      for (int i = 0; i < one.num_parameters(); ++i) {
        EXPECT_EQ(lanes.training().gradient(i), one.training().gradient(i));
      }
      one.Update();
      lanes.Update();
    }
  }

  const Batch batch_ = BatchFor(Spec(1), /*seed=*/1);
};

TEST_F(SplitLayersModelTest, PartsTrainAsTheWhole) {
  Model whole(Spec(1), {});
  Model split(Spec(2), OnTheFirst());
  const auto wanted = whole.training().Step(batch_, 1);
  const auto found = split.training().Step(batch_, 1);
  ASSERT_THAT(wanted, IsOk());
  ASSERT_THAT(found, IsOk());
  EXPECT_NEAR(found->loss, wanted->loss, kTolerance);
  for (int i = 0; i < whole.num_parameters(); ++i) {
    const absl::Span<const float> gradient = whole.training().gradient(i);
    for (size_t k = 0; k < gradient.size(); ++k) {
      ASSERT_NEAR(split.training().gradient(i)[k], gradient[k], kTolerance)
          << whole.training().parameters()[i].name() << " " << k;
    }
  }
}

TEST_F(SplitLayersModelTest, PartsOnSeveralDevicesHaveTheBitsOfThoseOnOne) {
  ExpectSameSteps({"cpu"}, "cpu");
}

TEST_F(SplitLayersModelTest, ForwardHasTheBitsOfTheWholeWhereTheKernelsAllow) {
  Model whole(Spec(1), {}, {"ref"});
  Model split(Spec(2), OnTheFirst(), {"ref"});
  ASSERT_THAT(whole.evaluation().Evaluate(batch_), IsOk());
  ASSERT_THAT(split.evaluation().Evaluate(batch_), IsOk());
  EXPECT_EQ(split.evaluation().outputs(), whole.evaluation().outputs());
}

// With AVX2, the order of sums of oneDNN 2.6 depends on the number of channels.
TEST_F(SplitLayersModelTest, ForwardIsThatOfTheWholeButForRounding) {
  Model whole(Spec(1), {});
  Model split(Spec(2), OnTheFirst());
  ASSERT_THAT(whole.evaluation().Evaluate(batch_), IsOk());
  ASSERT_THAT(split.evaluation().Evaluate(batch_), IsOk());
  EXPECT_THAT(split.evaluation().outputs(),
              testing::Pointwise(testing::FloatNear(kTolerance),
                                 whole.evaluation().outputs()));
}

TEST_F(SplitLayersModelTest, PartsOnDevicesOfTheirOwnHaveTheBitsOfThoseOnOne) {
  ExpectSameSteps({"device_of_cpu"}, "cpu");
  ExpectSameSteps({"cpu", "device_of_cpu"}, "cpu");
}

// Pairs of outputs and inputs: convolutions in thirds, dense layers in quarters
// of which the first device has three.
constexpr char kPairsModel[] = R"pb(
  input_shape: [ 2, 8, 8 ]
  layer {
    name: "conv1"
    type: "conv2d"
    split { parts: 3 }
    attr { name: "filters" i: 6 }
    attr { name: "kernel" i: 3 }
  }
  layer { name: "norm" type: "batch_norm" }
  layer { name: "relu" type: "relu" }
  layer {
    name: "conv2"
    type: "conv2d"
    split { parts: 3 by: INPUTS }
    attr { name: "filters" i: 8 }
    attr { name: "kernel" i: 3 }
    attr { name: "l2" f: 0.01 }
    attr { name: "activation" s: "relu" }
  }
  layer { name: "pool" type: "max_pool" }
  layer { name: "flatten" type: "flatten" }
  layer {
    name: "dense1"
    type: "dense"
    split { parts: 4 }
    attr { name: "units" i: 24 }
  }
  layer { name: "tanh" type: "tanh" }
  layer {
    name: "drop"
    type: "dropout"
    attr { name: "rate" f: 0.4 }
  }
  layer {
    name: "logits"
    type: "dense"
    split { parts: 4 by: INPUTS }
    attr { name: "units" i: 10 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

// Two devices of a backend; the last part of each layer is the second's.
class Pairs {
 public:
  Pairs(const std::string& backend, ModelSpec spec)
      : first_(MakeBackend(backend)), second_(MakeBackend(backend)) {
    CompileOptions options;
    options.backend = first_.get();
    options.more_backends = {second_.get()};
    options.batch_size = kRows;
    options.input_gradient = true;
    options.device_of = [](absl::string_view layer, int part) {
      return part == (layer == "conv1" ? 2 : 3) ? 1 : 0;
    };
    model_ = Compile(spec, options);
    EXPECT_THAT(model_->InitializeParameters(/*seed=*/1), IsOk());
    options.parameters_of = model_.get();
    options.mode = Mode::kEvaluate;
    evaluation_ = Compile(spec, options);
  }

  CompiledModel& model() { return *model_; }
  CompiledModel& evaluation() { return *evaluation_; }
  static ModelSpec Whole() {
    ModelSpec spec = ParseModel(kPairsModel);
    for (LayerSpec& layer : *spec.mutable_layer()) layer.clear_split();
    return spec;
  }

 private:
  const std::unique_ptr<Backend> first_;
  const std::unique_ptr<Backend> second_;
  std::unique_ptr<CompiledModel> model_;
  std::unique_ptr<CompiledModel> evaluation_;
};

template <typename T>
void ExpectSamePairs(const std::string& backend, double tolerance) {
  Pairs whole(backend, Pairs::Whole());
  Pairs pairs(backend, ParseModel(kPairsModel));
  const Batch batch = BatchFor(Pairs::Whole(), /*seed=*/1);
  const auto wanted = whole.model().Step(batch, 1);
  const auto found = pairs.model().Step(batch, 1);
  ASSERT_THAT(wanted, IsOk());
  ASSERT_THAT(found, IsOk());
  EXPECT_NEAR(found->loss, wanted->loss, tolerance);
  const auto expect_near = [&](absl::Span<const T> some,
                               absl::Span<const T> all,
                               const std::string& name) {
    ASSERT_EQ(some.size(), all.size());
    for (size_t k = 0; k < all.size(); ++k) {
      ASSERT_NEAR(some[k], all[k], tolerance) << name << " " << k;
    }
  };
  for (size_t i = 0; i < whole.model().parameters().size(); ++i) {
    expect_near(pairs.model().gradient_as<T>(i),
                whole.model().gradient_as<T>(i),
                whole.model().parameters()[i].name());
  }
  expect_near(pairs.model().input_gradient_as<T>(),
              whole.model().input_gradient_as<T>(), "input");
  const auto whole_loss = whole.evaluation().Evaluate(batch);
  const auto pairs_loss = pairs.evaluation().Evaluate(batch);
  ASSERT_THAT(whole_loss, IsOk());
  ASSERT_THAT(pairs_loss, IsOk());
  EXPECT_NEAR(pairs_loss->loss, whole_loss->loss, tolerance);
}

// Sums of some hundred products, of values below 1, that are made in parts:
// 2^-53 each, and what the batch norm makes of them.
TEST(SplitPairsTest, TrainAsTheWholeInDouble) {
  ExpectSamePairs<double>("ref_float64", /*tolerance=*/1e-13);
}

TEST(SplitPairsTest, TrainAsTheWhole) {
  for (const std::string backend : {"cpu", "device_of_ref", "device_of_cpu"}) {
    SCOPED_TRACE(backend);
    ExpectSamePairs<float>(backend, kTolerance);
  }
}

// The values of a model, which are not there before they are asked for, on
// whichever thread.
class LateValues : public ParameterGate {
 public:
  // The values that the model has now.
  explicit LateValues(CompiledModel* model) : model_(*model) {
    for (size_t i = 0; i < model->parameters().size(); ++i) {
      const absl::Span<float> value = model->parameter(static_cast<int>(i));
      values_.emplace_back(value.begin(), value.end());
      std::fill(value.begin(), value.end(),
                std::numeric_limits<float>::quiet_NaN());
    }
  }

  absl::Status BeforeUse(int parameter) override {
    if (model_.parameters()[parameter].name() == fails_at_) {
      return absl::AbortedError("fenced: gone");
    }
    std::copy(values_[parameter].begin(), values_[parameter].end(),
              model_.parameter(parameter).begin());
    return absl::OkStatus();
  }
  void FailAt(const std::string& parameter) { fails_at_ = parameter; }

 private:
  CompiledModel& model_;
  std::vector<std::vector<float>> values_;
  std::string fails_at_;
};

class DividedModelGateTest : public testing::Test {
 protected:
  static std::vector<int> Alternate(const ModelSpec& spec) {
    std::vector<int> devices;
    for (int i = 0; i < spec.layer_size(); ++i) devices.push_back(i % 2);
    return devices;
  }

  const ModelSpec spec_ = ParseModel(kManyUsesModel);
  const Batch batch_ =
      MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, /*seed=*/1);
  Model model_{spec_, Alternate(spec_)};
};

TEST_F(DividedModelGateTest, NothingIsReadBeforeItIsAskedFor) {
  CompiledModel& model = model_.training();
  const auto wanted = model.Step(batch_, /*step_seed=*/1);
  ASSERT_THAT(wanted, IsOk());
  LateValues values(&model);
  const auto result = model.Step(batch_, 1, {/*listener=*/nullptr, &values});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->loss, wanted->loss);
}

TEST_F(DividedModelGateTest, AnErrorEndsTheStepAsItIs) {
  CompiledModel& model = model_.training();
  LateValues values(&model);
  values.FailAt("first/weights");
  EXPECT_EQ(model.Step(batch_, 1, {/*listener=*/nullptr, &values}).status(),
            absl::AbortedError("fenced: gone"));
  values.FailAt("");
  EXPECT_THAT(model.Step(batch_, 1, {/*listener=*/nullptr, &values}), IsOk());
}

// All uses of parameters, and dropout, on devices in turns.
class DividedDevicesTest : public testing::TestWithParam<Backends> {
 protected:
  // More than the calls, or the pieces of work, of a step.
  static constexpr int kMostCalls = 2000;

  static std::vector<int> InTurns(const ModelSpec& spec) {
    std::vector<int> devices;
    for (int i = 0; i < spec.layer_size(); ++i) {
      devices.push_back(i % kMostLanes);
    }
    return devices;
  }
  std::unique_ptr<Model> MakeDivided(uint64_t seed = 1) {
    return std::make_unique<Model>(spec_, InTurns(spec_), GetParam(), seed);
  }
  // The first device with memory of its own.
  static FakeStreams& StreamsOf(Model& model) {
    FakeStreams* const first = model.streams(0);
    return first != nullptr ? *first : *model.streams(1);
  }
  void ExpectSameStep(Model& divided, uint64_t step) {
    const auto wanted = one_.training().Step(batch_, step);
    const auto found = divided.training().Step(batch_, step);
    ASSERT_THAT(wanted, IsOk());
    ASSERT_THAT(found, IsOk());
    EXPECT_EQ(found->loss, wanted->loss);
    EXPECT_EQ(found->correct, wanted->correct);
    ExpectSameGradients(divided.training(), one_.training());
  }

  const ModelSpec spec_ = WideModel();
  const Batch batch_ =
      MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, /*seed=*/1);
  Model one_{spec_, {}, {"ref"}};
};

TEST_P(DividedDevicesTest, HaveTheBitsOfOneInWhateverOrderTheyWork) {
  constexpr uint64_t kSeeds = 5;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto divided = MakeDivided(seed);
    ASSERT_THAT(one_.training().InitializeParameters(/*seed=*/1), IsOk());
    for (uint64_t step = 1; step <= 2; ++step) {
      ExpectSameStep(*divided, 10 * seed + step);
      one_.Update();
      divided->Update();
    }
    Batch few = MakeBatch(kRows - 1, kManyUsesElements, kManyUsesClasses, seed);
    const auto wanted = one_.evaluation().Evaluate(few);
    const auto found = divided->evaluation().Evaluate(few);
    ASSERT_THAT(wanted, IsOk());
    ASSERT_THAT(found, IsOk());
    EXPECT_EQ(found->loss, wanted->loss);
    EXPECT_EQ(divided->evaluation().outputs(), one_.evaluation().outputs());
  }
}

// The loss and the gradients as they were when they were told of.
class ToldValues : public StepListener {
 public:
  explicit ToldValues(const CompiledModel* model) : model_(*model) {}

  absl::Status OnForward(double loss) override {
    loss_ = loss;
    return absl::OkStatus();
  }
  void OnGradient(int parameter) override {
    const absl::Span<const float> gradient = model_.gradient(parameter);
    told_[parameter].assign(gradient.begin(), gradient.end());
  }

  double loss() const { return loss_; }
  const std::map<int, std::vector<float>>& told() const { return told_; }

 private:
  const CompiledModel& model_;
  double loss_ = 0;
  std::map<int, std::vector<float>> told_;
};

TEST_P(DividedDevicesTest, WhatIsToldIsThereAndTheLossHasNoPenaltyYet) {
  const auto divided = MakeDivided();
  ToldValues wanted(&one_.training());
  ToldValues found(&divided->training());
  const auto result = one_.training().Step(batch_, 1, {&wanted});
  ASSERT_THAT(result, IsOk());
  ASSERT_THAT(divided->training().Step(batch_, 1, {&found}), IsOk());
  EXPECT_EQ(found.loss(), wanted.loss());
  EXPECT_LT(found.loss(), result->loss);
  EXPECT_EQ(found.told(), wanted.told());
}

TEST_P(DividedDevicesTest, NothingIsReadBeforeItIsAskedFor) {
  const auto divided = MakeDivided();
  LateValues values(&divided->training());
  ASSERT_THAT(divided->training().Step(batch_, 1, {nullptr, &values}), IsOk());
  ASSERT_THAT(one_.training().Step(batch_, 1), IsOk());
  ExpectSameGradients(divided->training(), one_.training());
}

TEST_P(DividedDevicesTest, ALabelOutOfRangeIsToldBeforeAnythingIsDone) {
  const auto divided = MakeDivided();
  Batch wrong =
      MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, /*seed=*/1);
  wrong.labels()[1] = 4711;
  EXPECT_THAT(divided->training().Step(wrong, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("layer 'loss'")));
  ExpectSameStep(*divided, 1);
}

TEST_P(DividedDevicesTest, AnyCallThatFailsEndsItsStepOnly) {
  const auto divided = MakeDivided();
  int failed = 0;
  for (bool has_failed = true; has_failed && failed < kMostCalls; ++failed) {
    SCOPED_TRACE(testing::Message() << "call " << failed + 1);
    StreamsOf(*divided).FailCall(failed + 1);
    const auto result = divided->training().Step(batch_, failed);
    has_failed = !result.ok();
    if (has_failed) {
      ASSERT_THAT(result, StatusIs(absl::StatusCode::kInternal,
                                   testing::HasSubstr("the fake fails")));
    }
    StreamsOf(*divided).FailCall(0);
    if (failed % 8 == 0) ExpectSameStep(*divided, failed);
  }
  EXPECT_GT(failed, 20);
  EXPECT_LT(failed, kMostCalls);
  ExpectSameStep(*divided, failed);
}

TEST_P(DividedDevicesTest, ADeviceThatFailsSaysSoEachTime) {
  int failed = 0;
  for (bool has_failed = true; has_failed && failed < kMostCalls; ++failed) {
    SCOPED_TRACE(testing::Message() << "work " << failed + 1);
    const auto divided = MakeDivided(failed);
    StreamsOf(*divided).FailWork(failed + 1);
    const absl::Status status = divided->training().Step(batch_, 1).status();
    has_failed = !status.ok();
    if (!has_failed) continue;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                                 testing::HasSubstr("the fake fails")));
    EXPECT_THAT(divided->training().Step(batch_, 1),
                StatusIs(absl::StatusCode::kInternal));
  }
  EXPECT_GT(failed, 20);
  EXPECT_LT(failed, kMostCalls);
}

TEST_P(DividedDevicesTest, AnyCallThatFailsIsTheErrorOfTheCreation) {
  const auto divided = MakeDivided();
  int failed = 0;
  for (bool has_failed = true; has_failed && failed < kMostCalls; ++failed) {
    StreamsOf(*divided).FailCall(failed + 1);
    const auto model = CompiledModel::Create(spec_, divided->Options());
    has_failed = !model.ok();
    if (has_failed) {
      ASSERT_THAT(model, StatusIs(absl::StatusCode::kInternal,
                                  testing::HasSubstr("the fake fails")));
    }
  }
  EXPECT_GT(failed, 20);
  EXPECT_LT(failed, kMostCalls);
}

std::string LanesName(const testing::TestParamInfo<Backends>& info) {
  return absl::StrJoin(info.param, "_");
}

INSTANTIATE_TEST_SUITE_P(
    Lanes, DividedDevicesTest,
    testing::Values(Backends{"device_of_ref"}, Backends{"ref", "device_of_ref"},
                    Backends{"device_of_ref", "ref", "device_of_ref"}),
    &LanesName);

}  // namespace
}  // namespace muster
