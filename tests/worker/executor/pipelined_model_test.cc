// Models in stages that work on micro-batches, against the same in one piece.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 1;

// By layer, its device.
using Devices = std::vector<int>;

// The layers from `first` on are the second stage.
Devices CutBefore(const ModelSpec& spec, const std::string& first) {
  Devices devices;
  int device = 0;
  for (const LayerSpec& layer : spec.layer()) {
    if (layer.name() == first) device = 1;
    devices.push_back(device);
  }
  return devices;
}

// Two devices, and what is compiled for them.
class Compiler {
 public:
  explicit Compiler(const std::string& backend) : Compiler(backend, backend) {}
  Compiler(const std::string& first, const std::string& second)
      : first_(MakeBackend(first)), second_(MakeBackend(second)) {
    options_.batch_size = 8;
    options_.device_names = {"cpu:0", "cpu:1"};
  }

  CompileOptions& options() { return options_; }
  // By default a part is on the device of its number.
  void set_devices_of_parts(const Devices& devices) { of_parts_ = devices; }
  absl::StatusOr<std::unique_ptr<CompiledModel>> TryTo(ModelSpec spec,
                                                       int micro_batches,
                                                       const Devices& devices) {
    spec.mutable_pipeline()->set_micro_batches(micro_batches);
    CompileOptions options = options_;
    options.backend = first_.get();
    options.more_backends = {second_.get()};
    options.device_of = [spec, devices, of_parts = of_parts_](
                            absl::string_view layer, int part) {
      for (int i = 0; i < spec.layer_size(); ++i) {
        if (spec.layer(i).name() != layer) continue;
        return part == CompileOptions::kWholeLayer ? devices[i]
                                                   : of_parts[part];
      }
      return 0;
    };
    auto model = CompiledModel::Create(spec, options);
    if (model.ok()) {
      EXPECT_THAT((*model)->InitializeParameters(kSeed), IsOk());
    }
    return model;
  }
  std::unique_ptr<CompiledModel> Compile(const ModelSpec& spec,
                                         int micro_batches,
                                         const Devices& devices) {
    auto model = TryTo(spec, micro_batches, devices);
    EXPECT_THAT(model, IsOk());
    return model.ok() ? *std::move(model) : nullptr;
  }
  std::unique_ptr<CompiledModel> CompileWhole(const ModelSpec& spec) {
    return Compile(spec, 0, Devices(spec.layer_size(), 0));
  }

 private:
  const std::unique_ptr<Backend> first_;
  const std::unique_ptr<Backend> second_;
  CompileOptions options_;
  Devices of_parts_ = {0, 1};
};

Batch BatchFor(const ModelSpec& spec, int64_t rows) {
  int64_t elements = 1;
  for (const int64_t size : spec.input_shape()) elements *= size;
  return spec.name() == "linear_regression"
             ? MakeTargetBatch(rows, elements, /*num_targets=*/1, kSeed)
             : MakeBatch(rows, elements, /*classes=*/3, kSeed);
}

// `tolerance` 0: bit for bit.
void ExpectSameStep(CompiledModel* found, CompiledModel* wanted,
                    const Batch& batch, float tolerance) {
  const auto wanted_step = wanted->Step(batch, kSeed);
  const auto found_step = found->Step(batch, kSeed);
  ASSERT_THAT(wanted_step, IsOk());
  ASSERT_THAT(found_step, IsOk());
  EXPECT_NEAR(found_step->loss, wanted_step->loss, tolerance);
  EXPECT_EQ(found_step->correct, wanted_step->correct);
  for (int i = 0; i < static_cast<int>(wanted->parameters().size()); ++i) {
    const absl::Span<const float> gradient = wanted->gradient(i);
    for (size_t k = 0; k < gradient.size(); ++k) {
      ASSERT_NEAR(found->gradient(i)[k], gradient[k], tolerance)
          << wanted->parameters()[i].name() << " " << k;
    }
  }
}

constexpr char kSmallCnn[] = R"pb(
  input_shape: [ 1, 8, 8 ]
  layer {
    name: "conv1"
    type: "conv2d"
    attr { name: "filters" i: 4 }
    attr { name: "kernel" i: 3 }
    attr { name: "padding" s: "same" }
    attr { name: "activation" s: "relu" }
  }
  layer { name: "pool1" type: "max_pool" }
  layer {
    name: "conv2"
    type: "conv2d"
    attr { name: "filters" i: 8 }
    attr { name: "kernel" i: 3 }
    attr { name: "padding" s: "same" }
    attr { name: "activation" s: "relu" }
  }
  layer { name: "pool2" type: "max_pool" }
  layer { name: "flatten" type: "flatten" }
  layer {
    name: "dense1"
    type: "dense"
    attr { name: "units" i: 16 }
    attr { name: "activation" s: "relu" }
    attr { name: "l2" f: 0.01 }
  }
  layer {
    name: "dropout"
    type: "dropout"
    attr { name: "rate" f: 0.3 }
  }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 3 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

void ExpectAsWhole(const std::string& backend, const ModelSpec& spec,
                   const std::string& cut, float tolerance) {
  SCOPED_TRACE(cut);
  Compiler compiler(backend);
  const auto whole = compiler.CompileWhole(spec);
  const Batch batch = BatchFor(spec, 8);
  for (const int micro_batches : {2, 4, 8}) {
    SCOPED_TRACE(micro_batches);
    const auto pipelined =
        compiler.Compile(spec, micro_batches, CutBefore(spec, cut));
    ASSERT_NE(pipelined, nullptr);
    for (int step = 0; step < 2; ++step) {
      ExpectSameStep(pipelined.get(), whole.get(), batch, tolerance);
    }
  }
}

// A row's forward pass and the gradient of its input do not depend on other
// rows, masks of dropout are those of the whole batch, and the loss and the
// weights' gradients are of all micro-batches together.
TEST(PipelinedModel, PlainLoopsGiveTheBitsOfTheWholeBatch) {
  for (const std::string cut :
       {"pool1", "conv2", "dense1", "dropout", "loss"}) {
    ExpectAsWhole("ref", ParseModel(kSmallCnn), cut, /*tolerance=*/0);
  }
  ExpectAsWhole("ref", LoadZooModel("linear_regression").model(), "loss", 0);
}

// oneDNN divides sums by the number of rows: some 2^-24 of a gradient of 1.
TEST(PipelinedModel, TheCpuGivesTheWholeBatch) {
  constexpr float kTolerance = 1e-5f;
  const ModelSpec cnn = LoadZooModel("mnist_cnn").model();
  ExpectAsWhole("cpu", cnn, "conv2", kTolerance);
  ExpectAsWhole("cpu", cnn, "dense1", kTolerance);
  ExpectAsWhole("cpu", LoadZooModel("mlp").model(), "dense2", kTolerance);
}

// Rows of 20 bytes: their parts are not aligned, and are copied. The two
// readers of `base` are of different stages; `again` shares `base`'s weights.
constexpr char kUnevenModel[] = R"pb(
  input_shape: [ 5 ]
  layer {
    name: "base"
    type: "dense"
    attr { name: "units" i: 5 }
  }
  layer {
    name: "drop"
    type: "dropout"
    attr { name: "rate" f: 0.3 }
  }
  layer { name: "bent" type: "tanh" }
  layer {
    name: "again"
    type: "dense"
    share: "base"
    attr { name: "units" i: 5 }
  }
  layer { name: "sum" type: "add" input: "bent" input: "again" }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 3 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

TEST(PipelinedModel, UnalignedRowsAndSharedWeightsGiveTheSameBits) {
  const ModelSpec spec = ParseModel(kUnevenModel);
  Compiler compiler("ref");
  compiler.options().batch_size = 6;
  const auto whole = compiler.CompileWhole(spec);
  const Batch batch = BatchFor(spec, 6);
  for (const std::string cut : {"drop", "again", "sum", "logits"}) {
    SCOPED_TRACE(cut);
    const auto pipelined = compiler.Compile(spec, 3, CutBefore(spec, cut));
    ASSERT_NE(pipelined, nullptr);
    ExpectSameStep(pipelined.get(), whole.get(), batch, /*tolerance=*/0);
  }
}

TEST(PipelinedModel, PartsOfALayerCanBeOfDifferentStages) {
  ModelSpec spec = ParseModel(kSmallCnn);
  for (LayerSpec& layer : *spec.mutable_layer()) {
    if (layer.name() == "conv2") layer.mutable_split()->set_parts(2);
  }
  Compiler compiler("ref");
  const auto whole = compiler.CompileWhole(spec);
  const auto pipelined = compiler.Compile(spec, 4, CutBefore(spec, "conv2"));
  ASSERT_NE(pipelined, nullptr);
  ExpectSameStep(pipelined.get(), whole.get(), BatchFor(spec, 8), 0);
  EXPECT_THAT(pipelined->pipeline_title(),
              HasSubstr("pipeline: 4 micro-batches of 2 rows; cpu:0 computes "
                        "conv1 to flatten, cpu:1 computes conv2 to loss"));
}

// The sum over inputs is made in two parts: some 2^-24 of a gradient of 1.
TEST(PipelinedModel, APairOfSplitLayersCanBeOfTwoStages) {
  const ModelSpec one = ParseModel(kSmallCnn);
  ModelSpec pair = one;
  for (LayerSpec& layer : *pair.mutable_layer()) {
    if (layer.name() != "conv2" && layer.name() != "dense1") continue;
    layer.mutable_split()->set_parts(2);
    if (layer.name() == "dense1") layer.mutable_split()->set_by(INPUTS);
  }
  Compiler compiler("ref");
  const auto whole = compiler.CompileWhole(one);
  const auto pipelined = compiler.Compile(pair, 4, CutBefore(pair, "conv2"));
  ASSERT_NE(pipelined, nullptr);
  ExpectSameStep(pipelined.get(), whole.get(), BatchFor(one, 8),
                 /*tolerance=*/1e-6f);
}

constexpr char kBatchNormModel[] = R"pb(
  input_shape: [ 16 ]
  layer {
    name: "hidden"
    type: "dense"
    attr { name: "units" i: 16 }
  }
  layer { name: "norm" type: "batch_norm" }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 3 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

// Each micro-batch is normalized as a batch of its own.
TEST(PipelinedModel, BatchNormTakesTheStatisticsOfEachMicroBatch) {
  constexpr int64_t kHalf = 4;
  const ModelSpec spec = ParseModel(kBatchNormModel);
  Compiler compiler("ref");
  const auto pipelined = compiler.Compile(spec, 2, CutBefore(spec, "logits"));
  ASSERT_NE(pipelined, nullptr);
  EXPECT_THAT(pipelined->pipeline_title(), HasSubstr("statistics of each"));
  const Batch batch = BatchFor(spec, 8);
  ASSERT_THAT(pipelined->Step(batch, kSeed), IsOk());

  compiler.options().batch_size = kHalf;
  const auto half = compiler.CompileWhole(spec);
  std::vector<std::vector<float>> means(half->parameters().size());
  for (int64_t first : {int64_t{0}, kHalf}) {
    Batch rows = BatchFor(spec, kHalf);
    std::copy_n(batch.input().begin() + first * 16, kHalf * 16,
                rows.input().begin());
    std::copy_n(batch.labels().begin() + first, kHalf, rows.labels().begin());
    ASSERT_THAT(half->Step(rows, kSeed), IsOk());
    for (int i = 0; i < static_cast<int>(means.size()); ++i) {
      means[i].resize(half->gradient(i).size());
      for (size_t k = 0; k < means[i].size(); ++k) {
        means[i][k] += half->gradient(i)[k] / 2;
      }
    }
  }
  for (int i = 0; i < static_cast<int>(means.size()); ++i) {
    EXPECT_THAT(pipelined->gradient(i),
                testing::Pointwise(testing::FloatNear(1e-6f), means[i]))
        << half->parameters()[i].name();
  }
}

constexpr char kSplitNormModel[] = R"pb(
  input_shape: [ 1, 6, 6 ]
  layer {
    name: "conv"
    type: "conv2d"
    attr { name: "filters" i: 6 }
    attr { name: "kernel" i: 3 }
  }
  layer { name: "norm" type: "batch_norm" }
  layer { name: "relu" type: "relu" }
  layer { name: "flatten" type: "flatten" }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 3 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

// Each channel is normalized by itself, with the averages of its own. Of three
// parts two are on one device.
TEST(PipelinedModel, BatchNormInPartsHasTheBitsOfTheWhole) {
  const ModelSpec spec = ParseModel(kSplitNormModel);
  ModelSpec split = spec;
  split.mutable_layer(0)->mutable_split()->set_parts(3);
  Compiler compiler("ref");
  compiler.set_devices_of_parts({0, 0, 1});
  const Batch batch = BatchFor(spec, 8);
  for (const int micro_batches : {0, 2}) {
    SCOPED_TRACE(micro_batches);
    const Devices devices = CutBefore(spec, "relu");
    const auto whole = compiler.Compile(spec, micro_batches, devices);
    const auto in_parts = compiler.Compile(split, micro_batches, devices);
    ASSERT_NE(in_parts, nullptr);
    EXPECT_THAT(in_parts->DescribePlan({"cpu:0", "cpu:1"}),
                HasSubstr("norm      cpu:1"));
    ExpectSameStep(in_parts.get(), whole.get(), batch, /*tolerance=*/0);
  }
}

// In three micro-batches, the second stage from `cut` on.
void ExpectTheHostsBits(const ModelSpec& spec, const std::string& cut) {
  SCOPED_TRACE(cut);
  constexpr int64_t kRows = 6;
  Compiler host("ref");
  host.options().batch_size = kRows;
  const auto wanted = host.Compile(spec, 3, CutBefore(spec, cut));
  const std::pair<std::string, std::string> kinds[] = {
      {"device_of_ref", "device_of_ref"},
      {"ref", "device_of_ref"},
      {"device_of_ref", "ref"}};
  for (const auto& [first, second] : kinds) {
    SCOPED_TRACE(absl::StrCat(first, ", ", second));
    Compiler devices(first, second);
    devices.options().batch_size = kRows;
    const auto found = devices.Compile(spec, 3, CutBefore(spec, cut));
    ASSERT_NE(found, nullptr);
    for (int step = 0; step < 2; ++step) {
      ExpectSameStep(found.get(), wanted.get(), BatchFor(spec, kRows), 0);
    }
  }
}

TEST(PipelinedModel, DevicesWithMemoryOfTheirOwnHaveTheHostsBits) {
  ModelSpec pair = ParseModel(kSmallCnn);
  ExpectTheHostsBits(pair, "dense1");
  for (LayerSpec& layer : *pair.mutable_layer()) {
    if (layer.name() != "conv2" && layer.name() != "dense1") continue;
    layer.mutable_split()->set_parts(2);
    if (layer.name() == "dense1") layer.mutable_split()->set_by(INPUTS);
  }
  ExpectTheHostsBits(pair, "conv2");
  ExpectTheHostsBits(ParseModel(kUnevenModel), "sum");
  ExpectTheHostsBits(ParseModel(kBatchNormModel), "logits");
  ModelSpec norm = ParseModel(kSplitNormModel);
  norm.mutable_layer(0)->mutable_split()->set_parts(2);
  ExpectTheHostsBits(norm, "relu");
}

TEST(PipelinedModel, EvaluatesTheWholeBatch) {
  const ModelSpec spec = LoadZooModel("mlp").model();
  Compiler compiler("ref");
  compiler.options().mode = CompileOptions::Mode::kEvaluate;
  const auto whole = compiler.CompileWhole(spec);
  const auto pipelined = compiler.Compile(spec, 3, CutBefore(spec, "dense2"));
  ASSERT_NE(pipelined, nullptr);
  EXPECT_FALSE(pipelined->has_pipeline());
  const Batch batch = BatchFor(spec, 5);
  ASSERT_THAT(whole->Evaluate(batch), IsOk());
  ASSERT_THAT(pipelined->Evaluate(batch), IsOk());
  EXPECT_EQ(pipelined->outputs(), whole->outputs());
}

TEST(PipelinedModel, WhatCannotBeIsRefusedByName) {
  const ModelSpec spec = ParseModel(kBatchNormModel);
  Compiler compiler("ref");
  const struct {
    int micro_batches;
    Devices devices;
    std::string message;
  } cases[] = {
      {3, {0, 0, 1, 1}, "a batch of 8 rows cannot be divided into 3 equal"},
      {1, {0, 0, 1, 1}, "wanted 2 or more (0 for none), found 1"},
      {-2, {0, 0, 1, 1}, "wanted 2 or more (0 for none), found -2"},
      {2,
       {0, 1, 0, 1},
       "layer 'logits': model.pipeline: it is on cpu:0 and "
       "reads 'norm' on cpu:1, a later stage"},
      {2,
       {1, 1, 1, 1},
       "all layers, from 'hidden' to 'loss', are on cpu:1, "
       "which is one stage"},
  };
  for (const auto& refused : cases) {
    EXPECT_THAT(
        compiler.TryTo(spec, refused.micro_batches, refused.devices).status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(refused.message)));
  }
}

// mnist_cnn's parameters and their gradients are 25 MiB, nearly all of them
// dense1's; the activations of 32 rows are some 6 MiB, most of them conv1's.
TEST(PipelinedModel, ADevicesLimitRefusesTheWholeAndTakesTheDivided) {
  const ModelSpec spec = LoadZooModel("mnist_cnn").model();
  Compiler compiler("cpu");
  compiler.options().batch_size = 32;
  compiler.options().device_memory_limit_bytes = int64_t{28} << 20;
  EXPECT_THAT(
      compiler.TryTo(spec, 0, Devices(spec.layer_size(), 0)).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("bytes of memory of cpu:0"),
                     HasSubstr("--device_memory_limit_mb allows 29360128"))));
  EXPECT_THAT(compiler.TryTo(spec, 8, CutBefore(spec, "dense1")), IsOk());
  compiler.options().mode = CompileOptions::Mode::kEvaluate;
  compiler.options().batch_size = 500;
  EXPECT_THAT(compiler.TryTo(spec, 8, CutBefore(spec, "dense1")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("to evaluate, the model wants"),
                             HasSubstr("a smaller evaluation.batch_size"))));
}

TEST(PipelinedModel, ADevicesLimitIsOfThoseInTheHostsMemory) {
  const ModelSpec spec = LoadZooModel("mnist_cnn").model();
  Compiler compiler("device_of_cpu", "cpu");
  compiler.options().device_memory_limit_bytes = int64_t{28} << 20;
  const auto model = compiler.TryTo(spec, 0, Devices(spec.layer_size(), 0));
  ASSERT_THAT(model, IsOk());
  // Parameters and gradients, and what is copied, but not the device's arena.
  EXPECT_LT((*model)->memory_bytes(), int64_t{26} << 20);
  compiler.options().memory_limit_bytes = (*model)->memory_bytes();
  EXPECT_THAT(compiler.TryTo(spec, 0, Devices(spec.layer_size(), 0)), IsOk());
  --compiler.options().memory_limit_bytes;
  EXPECT_THAT(compiler.TryTo(spec, 0, Devices(spec.layer_size(), 0)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the model, with activations of 8 rows")));
}

// Parameters that are not there before somebody was told of the stall.
class StalledGate : public ParameterGate {
 public:
  explicit StalledGate(absl::Notification* told) : told_(*told) {}
  absl::Status BeforeUse(int parameter) override {
    if (parameter == 2) told_.WaitForNotification();
    return absl::OkStatus();
  }

 private:
  absl::Notification& told_;
};

TEST(PipelinedModel, AStageThatDoesNotGoOnIsNamed) {
  const ModelSpec spec = LoadZooModel("mnist_cnn").model();
  absl::Notification told;
  ReportedLines lines;
  Compiler compiler("cpu");
  compiler.options().stall_period = absl::Milliseconds(1);
  compiler.options().reporter =
      Reporter([&](Reporter::Level level, absl::string_view line) {
        lines.reporter().Report(level, line);
        if (!told.HasBeenNotified()) told.Notify();
      });
  const auto model = compiler.Compile(spec, 4, CutBefore(spec, "conv2"));
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(model->parameters()[2].name(), "conv2/weights");
  StalledGate gate(&told);
  EXPECT_THAT(model->Step(BatchFor(spec, 8), kSeed, {nullptr, &gate}), IsOk());
  EXPECT_THAT(lines.lines(), Contains(HasSubstr("cpu:1 has been at layer")));
}

TEST(PipelinedModel, MeasuresItsStages) {
  const ModelSpec spec = LoadZooModel("mlp").model();
  for (const std::string second : {"cpu", "device_of_cpu"}) {
    Compiler compiler("cpu", second);
    const auto model = compiler.Compile(spec, 4, CutBefore(spec, "dense2"));
    ASSERT_NE(model, nullptr);
    const auto table = model->MeasurePipeline(BatchFor(spec, 8));
    ASSERT_THAT(table, IsOk());
    EXPECT_THAT(*table, AllOf(HasSubstr("stage  device"), HasSubstr("cpu:1"),
                              HasSubstr("bubble in theory: 0.200"),
                              HasSubstr("dense2 to loss")));
    EXPECT_THAT(model->Step(BatchFor(spec, 8), kSeed), IsOk());
  }
}

}  // namespace
}  // namespace muster
