#include "worker/executor/compiled_model.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/aligned_places.h"
#include "common/tensor/dtype.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Mode = CompileOptions::Mode;

constexpr int64_t kRows = 4;
constexpr int64_t kFeatures = 5;
constexpr char kHead[] =
    "layer { name: 'logits' type: 'dense' attr { name: 'units' i: 3 } } "
    "layer { name: 'loss' type: 'softmax_cross_entropy' }";

class CompiledModelTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<CompiledModel> Make(const std::string& layers,
                                      Mode mode = Mode::kTrain) {
    CompileOptions options;
    options.backend = backend_.get();
    options.batch_size = kRows;
    options.mode = mode;
    auto model =
        Compile(ParseModel(absl::StrCat("input_shape: [5] ", layers)), options);
    EXPECT_THAT(model->InitializeParameters(1), IsOk());
    return model;
  }

  const std::unique_ptr<Backend> backend_ = MakeBackend(GetParam());
  const Batch batch_ = MakeBatch(kRows, kFeatures, 3, 1);
};

// Some bias is in the middle of the others, which it leaves where they are.
TEST_P(CompiledModelTest, FrozenParametersChangeNoGradientOfTheOthers) {
  const std::string layers = absl::StrCat(
      "layer { name: 'a' type: 'dense' attr { name: 'units' i: 7 } } "
      "layer { name: 'b' type: 'dense' attr { name: 'units' i: 6 } "
      "attr { name: 'activation' s: 'relu' } } ",
      kHead);
  const auto whole = Make(layers);
  const auto frozen = Make(
      absl::StrCat(layers, "freeze_pattern: 'a/bias' ", "freeze_pattern: 'b'"));
  const auto wanted = whole->Step(batch_, /*step_seed=*/1);
  const auto result = frozen->Step(batch_, /*step_seed=*/1);
  ASSERT_THAT(wanted, IsOk());
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->loss, wanted->loss);
  for (const int i : {0, 4, 5}) {
    EXPECT_EQ(frozen->gradient(i), whole->gradient(i)) << i;
  }
  for (const int i : {1, 2, 3}) {
    EXPECT_EQ(frozen->parameters()[i].kind(), FROZEN) << i;
    EXPECT_TRUE(frozen->gradient(i).empty()) << i;
  }
}

TEST_P(CompiledModelTest, TakesNoMoreMemoryThanItsLimit) {
  if (backend_->streams() != nullptr) {
    GTEST_SKIP() << "activations are in the device's memory";
  }
  CompileOptions options;
  options.backend = backend_.get();
  options.batch_size = kRows;
  const ModelSpec spec = ParseModel(absl::StrCat("input_shape: [5] ", kHead));
  const int64_t needed = Compile(spec, options)->memory_bytes();
  options.memory_limit_bytes = needed;
  EXPECT_THAT(CompiledModel::Create(spec, options), IsOk());
  options.memory_limit_bytes = needed - 1;
  EXPECT_THAT(
      CompiledModel::Create(spec, options),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr(absl::StrCat(
                   "the model, with activations of 4 rows, wants ", needed,
                   " bytes of memory, this process can have ", needed - 1))));
}

TEST_P(CompiledModelTest, IsRefusedBeforeItTakesAnyMemory) {
  CompileOptions options;
  options.backend = backend_.get();
  options.batch_size = kRows;
  options.memory_limit_bytes = int64_t{1} << 30;
  const ModelSpec spec = ParseModel(
      "name: 'wide' input_shape: [5] "
      "layer { name: 'logits' type: 'dense' "
      "        attr { name: 'units' i: 1073741824 } } "
      "layer { name: 'loss' type: 'softmax_cross_entropy' }");
  // 2^30 * (5 + 1), and their gradients.
  const int64_t bytes =
      (int64_t{6} << 30) * 2 * static_cast<int64_t>(SizeOf(backend_->dtype()));
  EXPECT_THAT(CompiledModel::Create(spec, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(absl::StrCat(
                           "compile model 'wide': the model, with 6442450944 "
                           "parameter values and their gradients, wants ",
                           bytes, " bytes of memory"))));
}

// Dense, with a penalty, and batch norm: all that reads a parameter.
TEST_P(CompiledModelTest, ReadsItsParametersElsewhere) {
  const std::string layers =
      "layer { name: 'bn' type: 'batch_norm' } "
      "layer { name: 'hidden' type: 'dense' attr { name: 'units' i: 7 } "
      "attr { name: 'l2' f: 0.5 } } "
      "layer { name: 'logits' type: 'dense' attr { name: 'units' i: 3 } } "
      "layer { name: 'loss' type: 'softmax_cross_entropy' }";
  const auto wanted = Make(layers);
  const auto model = Make(layers);
  AlignedBuffer memory;
  std::vector<int64_t> sizes;
  const auto count = static_cast<int>(model->parameters().size());
  for (int i = 0; i < count; ++i) {
    for (float& value : wanted->parameter(i)) value += 0.25f;
    sizes.push_back(static_cast<int64_t>(model->parameter(i).size()));
  }
  std::vector<const float*> elsewhere;
  for (const absl::Span<float> place : PlaceSpans<float>(sizes, &memory)) {
    const absl::Span<float> from =
        wanted->parameter(static_cast<int>(elsewhere.size()));
    std::copy(from.begin(), from.end(), place.begin());
    elsewhere.push_back(place.data());
  }
  const auto own = model->Step(batch_, 1);
  model->ReadParametersFrom(elsewhere);
  const auto result = model->Step(batch_, 1);
  const auto wanted_result = wanted->Step(batch_, 1);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->loss, wanted_result->loss);
  EXPECT_NE(result->loss, own->loss);
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(model->gradient(i), wanted->gradient(i)) << "parameter " << i;
  }
  model->ReadParametersFrom({});
  EXPECT_EQ(model->Step(batch_, 1)->loss, own->loss);
}

TEST_P(CompiledModelTest, ZeroWeightsGiveTheLossOfAGuess) {
  const auto model = Make(kHead);
  for (float& w : model->parameter(0)) w = 0;
  const auto result = model->Step(batch_, 1);
  ASSERT_THAT(result, IsOk());
  // One rounding of a float32 log.
  EXPECT_NEAR(result->loss, std::log(3.0), 1e-6);
}

TEST_P(CompiledModelTest, LossHasTheL2Penalty) {
  const auto plain = Make(kHead);
  const std::string penalized_head =
      "layer { name: 'logits' type: 'dense' attr { name: 'units' i: 3 } "
      "attr { name: 'l2' f: 0.5 } } "
      "layer { name: 'loss' type: 'softmax_cross_entropy' }";
  const auto train = Make(penalized_head);
  const auto evaluate = Make(penalized_head, Mode::kEvaluate);
  double squares = 0;
  for (const float w : plain->parameter(0)) squares += double{w} * w;
  const auto loss = plain->Step(batch_, 1);
  ASSERT_THAT(loss, IsOk());
  const auto trained = train->Step(batch_, 1);
  ASSERT_THAT(trained, IsOk());
  const auto evaluated = evaluate->Evaluate(batch_);
  ASSERT_THAT(evaluated, IsOk());
  EXPECT_NEAR(trained->loss, loss->loss + 0.25 * squares, 1e-6);
  EXPECT_NEAR(evaluated->loss, loss->loss + 0.25 * squares, 1e-6);
  for (size_t i = 0; i < plain->parameter(0).size(); ++i) {
    EXPECT_NEAR(train->gradient(0)[i],
                plain->gradient(0)[i] + 0.5 * plain->parameter(0)[i], 1e-6);
  }
}

TEST_P(CompiledModelTest, StepsRepeatToTheBit) {
  const auto model =
      Make(absl::StrCat("layer { name: 'drop' type: 'dropout' } ", kHead));
  const auto first = model->Step(batch_, 7);
  ASSERT_THAT(first, IsOk());
  const std::vector<float> gradient(model->gradient(0).begin(),
                                    model->gradient(0).end());
  ASSERT_THAT(model->Step(batch_, 8), IsOk());
  const auto again = model->Step(batch_, 7);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(first->loss, again->loss);
  EXPECT_THAT(gradient, testing::ElementsAreArray(model->gradient(0)));
}

TEST_P(CompiledModelTest, DropoutFollowsTheStepSeed) {
  const auto model =
      Make(absl::StrCat("layer { name: 'drop' type: 'dropout' } ", kHead));
  const auto a = model->Step(batch_, 1);
  const auto b = model->Step(batch_, 2);
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  EXPECT_NE(a->loss, b->loss);
}

TEST_P(CompiledModelTest, EvaluationCountsOnlyTheRowsOfTheBatch) {
  const auto model = Make(kHead, Mode::kEvaluate);
  const auto all = model->Evaluate(batch_);
  ASSERT_THAT(all, IsOk());
  double sum = 0;
  int64_t correct = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    Batch one = MakeLabelledBatch(1, Shape({kFeatures}));
    one.rows = 1;
    std::copy_n(batch_.input().begin() + row * kFeatures, kFeatures,
                one.input().begin());
    one.labels()[0] = batch_.labels()[row];
    const auto result = model->Evaluate(one);
    ASSERT_THAT(result, IsOk());
    sum += result->loss;
    correct += result->correct;
  }
  EXPECT_NEAR(sum / kRows, all->loss, 1e-6);
  EXPECT_EQ(correct, all->correct);
}

TEST_P(CompiledModelTest, MovingAveragesMoveTowardsTheBatch) {
  const auto model =
      Make(absl::StrCat("layer { name: 'norm' type: 'batch_norm' "
                        "attr { name: 'momentum' f: 0.75 } } ",
                        kHead));
  ASSERT_EQ(model->parameters()[2].name(), "norm/moving_mean");
  EXPECT_EQ(model->parameters()[2].kind(), STATE);
  EXPECT_EQ(model->parameters()[2].decay(), 0.25F);
  EXPECT_EQ(model->parameters()[1].decay(), 0);
  // The averages' values here are the shard's affair.
  for (float& m : model->parameter(2)) m = 2;
  ASSERT_THAT(model->Step(batch_, 1), IsOk());
  for (int64_t c = 0; c < kFeatures; ++c) {
    double mean = 0;
    double variance = 0;
    for (int64_t n = 0; n < kRows; ++n) {
      mean += batch_.input()[n * kFeatures + c] / kRows;
    }
    for (int64_t n = 0; n < kRows; ++n) {
      const double d = batch_.input()[n * kFeatures + c] - mean;
      variance += d * d / (kRows - 1);
    }
    EXPECT_NEAR(model->gradient(2)[c], 0.25 * mean, 1e-6);
    EXPECT_NEAR(model->gradient(3)[c], 0.25 * variance, 1e-6);
  }
}

TEST_P(CompiledModelTest, SharedAveragesAreMovedOneAfterAnother) {
  const std::string once =
      "layer { name: 'a' type: 'batch_norm' attr { name: 'momentum' f: 0.25 } "
      "} ";
  const std::string twice = absl::StrCat(
      once,
      "layer { name: 'b' type: 'batch_norm' share: 'a' attr { name: 'momentum' "
      "f: 0.5 } } ");
  const auto first = Make(absl::StrCat(once, kHead));
  const auto both = Make(absl::StrCat(twice, kHead));
  ASSERT_EQ(both->parameters().size(), first->parameters().size());
  EXPECT_EQ(both->parameters()[2].decay(), 1 - 0.25F * 0.5F);
  ASSERT_THAT(first->Step(batch_, 1), IsOk());
  ASSERT_THAT(both->Step(batch_, 1), IsOk());
  // The second reads values of mean 0 and variance 1, but for epsilon.
  for (int64_t c = 0; c < kFeatures; ++c) {
    EXPECT_NEAR(both->gradient(2)[c], 0.5 * first->gradient(2)[c], 1e-6);
    EXPECT_NEAR(both->gradient(3)[c],
                0.5 * first->gradient(3)[c] + 0.5 * kRows / (kRows - 1), 1e-2);
  }
}

TEST_P(CompiledModelTest, RefusesWrongBatches) {
  const auto model = Make(kHead);
  EXPECT_THAT(model->Step(MakeBatch(kRows - 1, kFeatures, 3, 1), 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rows")));
  EXPECT_THAT(
      model->Step(MakeBatch(kRows, kFeatures - 1, 3, 1), 1),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("values")));
  Batch bad_label = MakeBatch(kRows, kFeatures, 3, 1);
  bad_label.labels()[2] = 3;
  EXPECT_THAT(model->Step(bad_label, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("label")));
  Batch unlabelled;
  unlabelled.rows = kRows;
  unlabelled.Add(kBatchInput, FLOAT32, Shape({kFeatures}), kRows);
  EXPECT_THAT(model->Step(unlabelled, 1),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'labels'")));
  EXPECT_THAT(model->Step(batch_, 1), IsOk());
}

TEST_P(CompiledModelTest, TakesNoTargetThatIsNoProbabilityForOne) {
  constexpr char kSigmoid[] =
      "layer { name: 'logits' type: 'dense' attr { name: 'units' i: 2 } } "
      "layer { name: 'loss' type: 'sigmoid_cross_entropy' }";
  const auto trained = Make(kSigmoid);
  const auto evaluated = Make(kSigmoid, Mode::kEvaluate);
  Batch batch = MakeLabelledBatch(kRows, Shape({kFeatures}), /*num_targets=*/2);
  batch.rows = kRows;
  for (const float target : {2.0f, -1.0f, 1.0001f, std::nanf("")}) {
    batch.targets()[5] = target;
    const auto refused = StatusIs(
        absl::StatusCode::kInvalidArgument,
        AllOf(HasSubstr("from 0 to 1"), HasSubstr("target 1 of row 2")));
    EXPECT_THAT(trained->Step(batch, 1), refused);
    EXPECT_THAT(evaluated->Evaluate(batch), refused);
  }
  for (const float target : {0.0f, 0.3f, 1.0f}) {
    batch.targets()[5] = target;
    EXPECT_THAT(trained->Step(batch, 1), IsOk());
  }
}

TEST_P(CompiledModelTest, RefusesTheOtherMode) {
  EXPECT_THAT(Make(kHead)->Evaluate(batch_),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Make(kHead, Mode::kEvaluate)->Step(batch_, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

INSTANTIATE_TEST_SUITE_P(Backends, CompiledModelTest,
                         testing::Values("ref", "cpu", "device_of_ref",
                                         "device_of_cpu"),
                         [](const auto& info) { return info.param; });

TEST(CompiledModelMemoryTest, ReusesMemory) {
  const std::unique_ptr<Backend> backend = MakeBackend("ref");
  CompileOptions options;
  options.backend = backend.get();
  options.batch_size = 8;
  const ModelSpec spec = LoadZooModel("mnist_cnn").model();
  const auto model = Compile(spec, options);
  options.mode = CompileOptions::Mode::kEvaluate;
  const auto evaluate = Compile(spec, options);
  // conv1's output [8, 32, 28, 28] is the largest tensor: 803 KB. Its gradient
  // may not need more than that again, and evaluation needs no workspace.
  constexpr int64_t kConv1Bytes = 8 * 32 * 28 * 28 * 4;
  EXPECT_LT(model->arena_bytes(), 5 * kConv1Bytes / 2);
  EXPECT_LT(evaluate->arena_bytes(), 3 * kConv1Bytes / 2);
}

// kManyUsesModel over two devices of one kind, or on one: weights that both
// read, and a penalty of weights that lie elsewhere than the loss.
class CompiledModelDevicesTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<CompiledModel> Make(const std::string& backend, int devices,
                                      Mode mode = Mode::kTrain) {
    backends_.push_back(MakeBackend(backend));
    Backend* const first = backends_.back().get();
    backends_.push_back(MakeBackend(backend));
    Backend* const second = backends_.back().get();
    CompileOptions options;
    options.backend = first;
    options.batch_size = kRows;
    options.mode = mode;
    options.input_gradient = true;
    if (devices == 2) {
      options.more_backends = {second};
      options.device_of = [](absl::string_view layer, int /*part*/) {
        return layer == "norm" || layer == "flatten" || layer == "middle" ||
                       layer == "again" || layer == "loss"
                   ? 1
                   : 0;
      };
    }
    auto model = Compile(ParseModel(kManyUsesModel), options);
    EXPECT_THAT(model->InitializeParameters(1), IsOk());
    return model;
  }

  static void Update(CompiledModel* model) {
    for (size_t i = 0; i < model->parameters().size(); ++i) {
      const int parameter = static_cast<int>(i);
      const absl::Span<const float> gradient = model->gradient(parameter);
      const absl::Span<float> values = model->parameter(parameter);
      for (size_t k = 0; k < values.size(); ++k) {
        values[k] -= 0.125f * gradient[k];
      }
    }
  }

  std::vector<std::unique_ptr<Backend>> backends_;
  const Batch batch_ = MakeBatch(kRows, kManyUsesElements, kManyUsesClasses, 1);
};

TEST_P(CompiledModelDevicesTest, TwoTrainAsOneToTheBit) {
  const auto one = Make(GetParam(), 1);
  const auto two = Make(GetParam(), 2);
  EXPECT_THAT(one->DescribePlan({"a"}), testing::Not(HasSubstr("transfer")));
  EXPECT_THAT(two->DescribePlan({"a", "b"}), HasSubstr("transfer"));
  for (uint64_t step = 0; step < 3; ++step) {
    const auto wanted = one->Step(batch_, step);
    const auto result = two->Step(batch_, step);
    ASSERT_THAT(wanted, IsOk());
    ASSERT_THAT(result, IsOk());
    EXPECT_EQ(result->loss, wanted->loss);
    EXPECT_EQ(result->correct, wanted->correct);
    EXPECT_EQ(two->input_gradient_as<float>(), one->input_gradient_as<float>());
    for (size_t i = 0; i < one->parameters().size(); ++i) {
      const int parameter = static_cast<int>(i);
      EXPECT_EQ(two->gradient(parameter), one->gradient(parameter))
          << one->parameters()[i].name();
    }
    Update(one.get());
    Update(two.get());
  }
}

TEST_P(CompiledModelDevicesTest, TwoEvaluateAsOneToTheBit) {
  const auto wanted = Make(GetParam(), 1, Mode::kEvaluate)->Evaluate(batch_);
  const auto result = Make(GetParam(), 2, Mode::kEvaluate)->Evaluate(batch_);
  ASSERT_THAT(wanted, IsOk());
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->loss, wanted->loss);
}

INSTANTIATE_TEST_SUITE_P(Backends, CompiledModelDevicesTest,
                         testing::Values("ref", "cpu", "device_of_ref",
                                         "device_of_cpu"),
                         [](const auto& info) { return info.param; });

TEST(CompiledModelPlacementTest, RefusesWhatItCannotPlace) {
  const auto first = MakeBackend("ref");
  const auto other = MakeBackend("ref_float64");
  CompileOptions options;
  options.backend = first.get();
  options.batch_size = kRows;
  options.more_backends = {other.get()};
  const ModelSpec spec = ParseModel(kManyUsesModel);
  EXPECT_THAT(CompiledModel::Create(spec, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'ref_float64' computes in float64")));
  options.more_backends = {};
  options.device_of = [](absl::string_view, int) { return 1; };
  EXPECT_THAT(CompiledModel::Create(spec, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("its device is 1, the model has 1")));
}

}  // namespace
}  // namespace muster
