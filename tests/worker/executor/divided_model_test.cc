// Models whose layers are on several devices, against the same on one.
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
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

// A model of the cpu backend, for training and as it evaluates.
class Model {
 public:
  // `devices`: by layer; empty for one device.
  Model(const ModelSpec& spec, const std::vector<int>& devices)
      : spec_(spec), devices_(devices) {
    for (int i = 0; i < kMostLanes; ++i) {
      backends_.push_back(MakeBackend("cpu"));
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

 private:
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
  void ExpectSameStep(uint64_t seed) {
    const Batch batch = BatchFor(spec_, seed);
    const auto wanted = one_.training().Step(batch, seed);
    const auto found = divided_->training().Step(batch, seed);
    ASSERT_THAT(wanted, IsOk());
    ASSERT_THAT(found, IsOk());
    EXPECT_EQ(found->loss, wanted->loss);
    EXPECT_EQ(found->correct, wanted->correct);
    for (int i = 0; i < one_.num_parameters(); ++i) {
      EXPECT_EQ(divided_->training().gradient(i), one_.training().gradient(i))
          << one_.training().parameters()[i].name();
    }
    one_.Update();
    divided_->Update();
  }
  void ExpectSameEvaluation() {
    const Batch batch = BatchFor(spec_, /*seed=*/9);
    const auto wanted = one_.evaluation().Evaluate(batch);
    const auto found = divided_->evaluation().Evaluate(batch);
    ASSERT_THAT(wanted, IsOk());
    ASSERT_THAT(found, IsOk());
    EXPECT_EQ(found->loss, wanted->loss);
    EXPECT_EQ(divided_->evaluation().outputs(), one_.evaluation().outputs());
  }

  const ModelSpec spec_ = LoadZooModel(GetParam()).model();
  Model one_{spec_, {}};
  std::unique_ptr<Model> divided_;
};

TEST_P(DividedModelTest, HasTheBitsOfOneDevice) {
  const uint64_t cuts =
      std::getenv("MUSTER_SOAK") == nullptr ? kCiCuts : kSoakCuts;
  for (uint64_t seed = 0; seed < cuts; ++seed) {
    SCOPED_TRACE(testing::Message() << "cut by seed " << seed);
    divided_ = std::make_unique<Model>(spec_, Cut(spec_, seed));
    ASSERT_THAT(one_.training().InitializeParameters(/*seed=*/1), IsOk());
    for (uint64_t step = 1; step <= 2; ++step) ExpectSameStep(10 * seed + step);
    ExpectSameEvaluation();
  }
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
  Model one(Spec(2), {});
  Model lanes(Spec(2), OnTheFirst());
  for (int step = 1; step <= 3; ++step) {
    const auto wanted = one.training().Step(batch_, step);
    const auto found = lanes.training().Step(batch_, step);
    ASSERT_THAT(wanted, IsOk());
    ASSERT_THAT(found, IsOk());
    EXPECT_EQ(found->loss, wanted->loss);
    for (int i = 0; i < one.num_parameters(); ++i) {
      EXPECT_EQ(lanes.training().gradient(i), one.training().gradient(i));
    }
    one.Update();
    lanes.Update();
  }
}

TEST_F(SplitLayersModelTest, ForwardHasTheBitsOfTheWhole) {
  Model whole(Spec(1), {});
  Model split(Spec(2), OnTheFirst());
  ASSERT_THAT(whole.evaluation().Evaluate(batch_), IsOk());
  ASSERT_THAT(split.evaluation().Evaluate(batch_), IsOk());
  EXPECT_EQ(split.evaluation().outputs(), whole.evaluation().outputs());
}

TEST_F(SplitLayersModelTest, ADeviceWithMemoryOfItsOwnHasNoParts) {
  const auto device = MakeBackend("device_of_ref");
  CompileOptions options;
  options.backend = device.get();
  options.batch_size = kRows;
  EXPECT_THAT(CompiledModel::Create(Spec(2), options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("layer 'conv2' (conv2d): split")));
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
  ExpectSamePairs<float>("cpu", kTolerance);
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

}  // namespace
}  // namespace muster
