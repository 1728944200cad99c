// Every layer's gradients on each backend, of each parameter and of the model's
// input, against central finite differences on ref in double precision.
#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/backend/parity_backends.h"
#include "tests/worker/model/test_models.h"
#include "worker/layer/counter_random.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

constexpr uint64_t kSeed = 5;
constexpr uint64_t kStepSeed = 77;
constexpr int64_t kRows = 3;
// Values are floats, so their step is a power of two.
const double kStep = std::ldexp(1.0, -14);
// The difference quotient's own error: kStep^2 / 6 times a third derivative
// (below 10 in these models) plus rounding 1e-16 / kStep.
constexpr double kTolerance = 1e-7;
// The gradients of these models are below 1, sums of some dozens of float32
// products, each rounded to 6e-8.
constexpr double kFloat32Tolerance = 5e-6;

struct GradientCase {
  std::string name;
  std::string input_shape;
  std::string layers;
};

// Each model has a different width everywhere, so that a mixed-up dimension
// shows.
std::vector<GradientCase> Cases() {
  const std::string head =
      "layer { name: 'flatten' type: 'flatten' } "
      "layer { name: 'logits' type: 'dense' attr { name: 'units' i: 4 } } "
      "layer { name: 'loss' type: 'softmax_cross_entropy' }";
  const std::string flat_head =
      "layer { name: 'logits' type: 'dense' attr { name: 'units' i: 4 } } "
      "layer { name: 'loss' type: 'softmax_cross_entropy' }";
  const auto conv = [](const std::string& attrs) {
    return absl::StrCat(
        "layer { name: 'conv' type: 'conv2d' attr { name: 'filters' i: 3 } "
        "attr { name: 'kernel' list { v: [3, 2] } } ",
        attrs, "} ");
  };
  const auto dense = [](const std::string& attrs) {
    return absl::StrCat(
        "layer { name: 'dense' type: 'dense' attr { name: 'units' i: 5 } ",
        attrs, "} ");
  };
  const auto simple = [](const std::string& type, const std::string& attrs) {
    return absl::StrCat("layer { name: '", type, "' type: '", type, "' ", attrs,
                        "} ");
  };
  return {
      {"conv2d_valid", "[2, 5, 6]", conv("") + head},
      {"conv2d_same", "[2, 5, 6]",
       conv("attr { name: 'padding' s: 'same' } "
            "attr { name: 'activation' s: 'tanh' }") +
           head},
      {"conv2d_pads_stride_l2", "[2, 5, 6]",
       conv("attr { name: 'pads' list { v: [2, 1, 0, 1] } } "
            "attr { name: 'stride' list { v: [2, 3] } } "
            "attr { name: 'l2' f: 0.1 } "
            "attr { name: 'use_bias' b: false }") +
           head},
      {"conv2d_relu", "[2, 5, 6]",
       conv("attr { name: 'activation' s: 'relu' }") + head},
      {"conv2d_relu_max_pool", "[2, 5, 6]",
       conv("attr { name: 'activation' s: 'relu' } "
            "attr { name: 'padding' s: 'same' }") +
           simple("max_pool", "") + head},
      {"conv2d_groups", "[4, 5, 6]",
       "layer { name: 'conv' type: 'conv2d' attr { name: 'filters' i: 6 } "
       "attr { name: 'kernel' i: 3 } attr { name: 'groups' i: 2 } "
       "attr { name: 'l2' f: 0.1 } attr { name: 'activation' s: 'relu' } } " +
           head},
      {"depthwise_conv2d", "[3, 5, 6]",
       simple("depthwise_conv2d",
              "attr { name: 'kernel' list { v: [3, 2] } } "
              "attr { name: 'multiplier' i: 2 } "
              "attr { name: 'padding' s: 'same' }") +
           head},
      {"dense_relu_l2", "[6]",
       dense("attr { name: 'activation' s: 'relu' } "
             "attr { name: 'l2' f: 0.2 }") +
           flat_head},
      {"dense_sigmoid", "[6]",
       dense("attr { name: 'activation' s: 'sigmoid' }") + flat_head},
      {"relu", "[2, 3, 4]", conv("") + simple("relu", "") + head},
      {"layer_norm", "[2, 3, 4]",
       conv("") + simple("layer_norm", "") + simple("relu", "") + head},
      {"layer_norm_flat", "[6]",
       dense("") + simple("layer_norm", "attr { name: 'epsilon' f: 0.1 }") +
           flat_head},
      {"leaky_relu", "[2, 3, 4]",
       conv("") + simple("leaky_relu", "attr { name: 'slope' f: 0.3 }") + head},
      {"sigmoid", "[2, 3, 4]", conv("") + simple("sigmoid", "") + head},
      {"tanh", "[2, 3, 4]", conv("") + simple("tanh", "") + head},
      {"max_pool", "[2, 5, 7]",
       simple("max_pool",
              "attr { name: 'kernel' i: 3 } attr { name: 'stride' i: 2 } "
              "attr { name: 'padding' s: 'same' }") +
           head},
      {"average_pool", "[2, 5, 7]",
       simple("average_pool",
              "attr { name: 'kernel' i: 3 } attr { name: 'stride' i: 2 } "
              "attr { name: 'pads' i: 1 }") +
           head},
      {"global_average_pool", "[5, 3, 4]",
       simple("global_average_pool", "") + flat_head},
      {"global_max_pool", "[5, 3, 4]",
       simple("global_max_pool", "") + flat_head},
      {"flatten", "[2, 2, 3]", head},
      {"dropout", "[9]",
       simple("dropout", "attr { name: 'rate' f: 0.4 }") + flat_head},
      {"batch_norm", "[2, 3, 4]",
       conv("") + simple("batch_norm", "") + simple("relu", "") + head},
      {"batch_norm_flat", "[6]",
       dense("") + simple("batch_norm", "") + flat_head},
      {"add", "[2, 3, 4]",
       "layer { name: 'a' type: 'sigmoid' } "
       "layer { name: 'b' type: 'tanh' input: 'input' } "
       "layer { name: 'sum' type: 'add' input: 'a' input: 'b' input: 'a' } " +
           head},
      {"concat", "[2, 3, 4]",
       "layer { name: 'a' type: 'sigmoid' } "
       "layer { name: 'b' type: 'conv2d' input: 'input' "
       "attr { name: 'filters' i: 3 } attr { name: 'kernel' i: 1 } } "
       "layer { name: 'both' type: 'concat' input: 'a' input: 'b' } " +
           head},
      {"concat_flat", "[5]",
       "layer { name: 'a' type: 'sigmoid' } "
       "layer { name: 'b' type: 'tanh' input: 'input' } "
       "layer { name: 'both' type: 'concat' input: 'a' input: 'b' } " +
           flat_head},
      {"shared_dense", "[5]",
       dense("attr { name: 'l2' f: 0.1 }") +
           "layer { name: 'again' type: 'dense' share: 'dense' "
           "attr { name: 'units' i: 5 } attr { name: 'activation' s: 'tanh' } "
           "} " +
           flat_head},
      // Both pairs of outputs and inputs, with what may lie between them.
      {"split_pairs", "[2, 5, 6]",
       conv("split { parts: 3 } attr { name: 'padding' s: 'same' }") +
           simple("batch_norm", "") +
           "layer { name: 'conv2' type: 'conv2d' split { parts: 3 by: INPUTS } "
           "attr { name: 'filters' i: 6 } attr { name: 'kernel' i: 2 } "
           "attr { name: 'l2' f: 0.1 } attr { name: 'activation' s: 'relu' } "
           "} "
           "layer { name: 'conv3' type: 'conv2d' split { parts: 2 } "
           "attr { name: 'filters' i: 4 } attr { name: 'kernel' i: 2 } } " +
           simple("max_pool", "") + simple("flatten", "") + simple("tanh", "") +
           simple("dropout", "attr { name: 'rate' f: 0.4 }") +
           "layer { name: 'logits' type: 'dense' split { parts: 2 by: INPUTS } "
           "attr { name: 'units' i: 4 } } "
           "layer { name: 'loss' type: 'softmax_cross_entropy' }"},
      {"softmax_cross_entropy", "[4]",
       "layer { name: 'loss' type: 'softmax_cross_entropy' }"},
      {"label_smoothing", "[4]",
       "layer { name: 'loss' type: 'softmax_cross_entropy' "
       "attr { name: 'label_smoothing' f: 0.1 } }"},
      {"sigmoid_cross_entropy", "[4]",
       dense("") + "layer { name: 'loss' type: 'sigmoid_cross_entropy' }"},
      {"mean_squared_error", "[4]",
       dense("") + "layer { name: 'loss' type: 'mean_squared_error' }"},
  };
}

// Those whose factors have all bits; fewer make ReLUs and maxima change sides,
// and backend_parity_test compares them.
std::vector<ParityBackend> Backends() {
  std::vector<ParityBackend> backends = ParityBackends();
  backends.erase(std::remove_if(backends.begin(), backends.end(),
                                [](const ParityBackend& backend) {
                                  return backend.factor_bits < 24;
                                }),
                 backends.end());
  return backends;
}

using Case = std::tuple<GradientCase, ParityBackend>;

class GradientCheckTest : public testing::TestWithParam<Case> {
 public:
  static std::string NameOf(const testing::TestParamInfo<Case>& info) {
    return absl::StrCat(std::get<0>(info.param).name, "_",
                        std::get<1>(info.param).label);
  }

 protected:
  void SetUp() override {
    auto made = std::get<1>(GetParam()).make();
    if (absl::IsUnavailable(made.status())) GTEST_SKIP() << made.status();
    ASSERT_TRUE(made.ok()) << made.status();
    backend_ = *std::move(made);
    const GradientCase& model = std::get<0>(GetParam());
    spec_ = ParseModel(
        absl::StrCat("input_shape: ", model.input_shape, " ", model.layers));
    // backends_test says which backends must have everything.
    const absl::Status fits = TryCompile();
    if (absl::IsUnimplemented(fits)) GTEST_SKIP() << fits;
    exact_ = MakeModel<double>(ref_.get());
    elements_ = 1;
    for (const int64_t dim : spec_.input_shape()) elements_ *= dim;
    const int64_t outputs = exact_->num_outputs();
    batch_ = exact_->loss().reads_targets
                 ? MakeTargetBatch(kRows, elements_, outputs, kSeed)
                 : MakeBatch(kRows, elements_, outputs, kSeed);
  }

  static CompileOptions OptionsFor(Backend* backend) {
    CompileOptions options;
    options.backend = backend;
    options.batch_size = kRows;
    options.input_gradient = true;
    return options;
  }

  bool HasSplit() const {
    return absl::c_any_of(spec_.layer(), [](const LayerSpec& layer) {
      return layer.has_split();
    });
  }

  absl::Status TryCompile() const {
    return CompiledModel::Create(spec_, OptionsFor(backend_.get())).status();
  }

  template <typename T>
  std::unique_ptr<CompiledModel> MakeModel(Backend* backend) {
    auto model = Compile(spec_, OptionsFor(backend));
    // Not the initializers' zeros and ones: they hide errors.
    for (size_t i = 0; i < model->parameters().size(); ++i) {
      const CounterRandom random(kSeed, model->parameters()[i].name());
      absl::Span<T> values = model->template parameter_as<T>(i);
      for (size_t j = 0; j < values.size(); ++j) {
        values[j] = std::ldexp(static_cast<float>(random.Bits(j) >> 40), -24) -
                    0.453125f;
      }
    }
    return model;
  }

  double Loss() {
    const auto result = exact_->Step(batch_, kStepSeed);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->loss : 0;
  }

  // The difference quotient of the loss by *value. At a kink (a ReLU or a
  // maximum that changes sides within the step) the quotients with half the
  // step differ from it, and there is no derivative to compare with: false.
  template <typename T>
  bool Difference(T* value, double* quotient) {
    const T at = *value;
    const auto quotient_for = [&](double step) {
      *value = static_cast<T>(at + step);
      const double above = Loss();
      *value = static_cast<T>(at - step);
      const double below = Loss();
      *value = at;
      return (above - below) / (2 * step);
    };
    *quotient = quotient_for(kStep);
    return std::abs(*quotient - quotient_for(kStep / 2)) < kTolerance;
  }

  template <typename T, typename G>
  void Check(const std::string& name, absl::Span<const G> gradient, T* values) {
    const double tolerance =
        backend_->dtype() == FLOAT64 ? kTolerance : kFloat32Tolerance;
    int checked = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      double quotient = 0;
      if (!Difference(&values[i], &quotient)) continue;
      ++checked;
      EXPECT_NEAR(gradient[i], quotient, tolerance) << name << "[" << i << "]";
    }
    // Kinks are rare; a wrong skip would hide a whole gradient.
    EXPECT_GE(checked, 0.9 * gradient.size()) << name;
  }

  // The gradients of a model that computes in T.
  template <typename T>
  void CheckAll() {
    const auto model = MakeModel<T>(backend_.get());
    const auto result = model->Step(batch_, kStepSeed);
    ASSERT_TRUE(result.ok()) << result.status();
    for (size_t i = 0; i < model->parameters().size(); ++i) {
      if (model->parameters()[i].kind() == STATE) continue;
      Check(model->parameters()[i].name(), model->template gradient_as<T>(i),
            exact_->parameter_as<double>(i).data());
    }
    Check("input", model->template input_gradient_as<T>(),
          batch_.input().data());
  }

  const std::unique_ptr<Backend> ref_ = MakeBackend("ref_float64");
  std::unique_ptr<Backend> backend_;
  ModelSpec spec_;
  // Whose losses are compared.
  std::unique_ptr<CompiledModel> exact_;
  Batch batch_;
  int64_t elements_ = 0;
};

TEST_P(GradientCheckTest, AgreesWithFiniteDifferences) {
  if (backend_->dtype() == FLOAT64) {
    CheckAll<double>();
  } else {
    CheckAll<float>();
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, GradientCheckTest,
                         testing::Combine(testing::ValuesIn(Cases()),
                                          testing::ValuesIn(Backends())),
                         GradientCheckTest::NameOf);

TEST(GradientCheckCasesTest, CoverEveryRegisteredLayer) {
  std::set<std::string> covered;
  for (const GradientCase& c : Cases()) {
    const ModelSpec spec =
        ParseModel(absl::StrCat("input_shape: ", c.input_shape, c.layers));
    for (const LayerSpec& layer : spec.layer()) covered.insert(layer.type());
  }
  EXPECT_THAT(LayerRegistry::Names(), testing::ElementsAreArray(covered));
}

}  // namespace
}  // namespace muster
