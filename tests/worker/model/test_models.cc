#include "tests/worker/model/test_models.h"

#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "google/protobuf/text_format.h"
#include "tests/worker/backend/fake_device.h"
#include "worker/layer/counter_random.h"
#include "worker/training/training_spec.h"

namespace muster {
namespace {

constexpr char kDeviceOf[] = "device_of_";

template <typename T>
T ValueOrDie(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::cerr << value.status() << std::endl;
  std::abort();
}

}  // namespace

const char kManyUsesModel[] = R"pb(
  input_shape: [ 1, 6, 6 ]
  layer {
    name: "conv"
    type: "conv2d"
    attr { name: "filters" i: 4 }
    attr { name: "kernel" i: 3 }
    attr { name: "use_bias" b: false }
    attr { name: "activation" s: "relu" }
  }
  layer { name: "norm" type: "batch_norm" }
  layer { name: "pool" type: "max_pool" }
  layer { name: "flatten" type: "flatten" }
  layer {
    name: "first"
    type: "dense"
    attr { name: "units" i: 16 }
    attr { name: "l2" f: 0.5 }
    attr { name: "use_bias" b: false }
  }
  layer {
    name: "middle"
    type: "dense"
    attr { name: "units" i: 16 }
    attr { name: "use_bias" b: false }
  }
  layer {
    name: "again"
    type: "dense"
    share: "first"
    attr { name: "units" i: 16 }
    attr { name: "use_bias" b: false }
  }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 3 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

ModelSpec ParseModel(const std::string& text) {
  ModelSpec spec;
  if (!google::protobuf::TextFormat::ParseFromString(text, &spec)) {
    std::cerr << "not a ModelSpec:\n" << text << std::endl;
    std::abort();
  }
  return spec;
}

TrainingSpec LoadZooModel(const std::string& name) {
  return ValueOrDie(LoadTrainingSpec(
      absl::StrCat("worker/model/zoo/", name, ".textproto"), {}));
}

std::unique_ptr<Backend> MakeBackend(const std::string& name) {
  absl::string_view inner = name;
  if (absl::ConsumePrefix(&inner, kDeviceOf)) {
    return std::make_unique<FakeDevice>(MakeBackend(std::string(inner)),
                                        /*seed=*/1);
  }
  return ValueOrDie(CreateBackend(name, BackendOptions()));
}

Batch MakeBatch(int64_t rows, int64_t example_elements, int64_t classes,
                uint64_t seed) {
  const CounterRandom examples(seed, "examples");
  const CounterRandom labels(seed, "labels");
  Batch batch = MakeLabelledBatch(rows, Shape({example_elements}));
  batch.rows = rows;
  for (int64_t i = 0; i < rows * example_elements; ++i) {
    // 24 bits: every value is a float.
    batch.input()[i] = static_cast<float>(examples.Bits(i) >> 40) / (1 << 24);
  }
  for (int64_t i = 0; i < rows; ++i) {
    batch.labels()[i] = static_cast<int32_t>(labels.Bits(i) % classes);
  }
  return batch;
}

Batch MakeTargetBatch(int64_t rows, int64_t example_elements,
                      int64_t num_targets, uint64_t seed) {
  const Batch examples = MakeBatch(rows, example_elements, 1, seed);
  const CounterRandom targets(seed, "targets");
  Batch batch = MakeLabelledBatch(rows, Shape({example_elements}), num_targets);
  batch.rows = rows;
  absl::c_copy(examples.input(), batch.input().begin());
  for (size_t i = 0; i < batch.targets().size(); ++i) {
    batch.targets()[i] = static_cast<float>(targets.Bits(i) >> 40) / (1 << 24);
  }
  return batch;
}

std::unique_ptr<CompiledModel> Compile(const ModelSpec& spec,
                                       const CompileOptions& options) {
  return ValueOrDie(CompiledModel::Create(spec, options));
}

}  // namespace muster
