#include "worker/tower/tower_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/fake_device.h"
#include "tests/worker/model/test_models.h"
#include "worker/backend/backend.h"
#include "worker/backend/device_mean.h"
#include "worker/executor/device_trace.h"
#include "worker/executor/step_listener.h"
#include "worker/input/row_weights.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kElements = 6;
constexpr int64_t kClasses = 3;
constexpr uint64_t kSeed = 5;
// Between a mean over all rows at once and a mean of means: some float32
// additions of numbers below 1, in another order.
constexpr float kRounding = 1e-6f;

constexpr char kMlp[] = R"pb(
  name: "mlp"
  input_shape: 6
  layer {
    name: "hidden"
    type: "dense"
    attr { name: "units" i: 5 }
    attr { name: "l2" f: 0.01 }
  }
  layer { name: "active" type: "tanh" }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 3 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

constexpr char kNormed[] = R"pb(
  name: "normed"
  input_shape: 6
  layer { name: "norm" type: "batch_norm" }
  layer { name: "dropped" type: "dropout" }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 3 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

std::vector<SeededBatch> Seeded(absl::Span<const Batch> batches) {
  std::vector<SeededBatch> seeded;
  for (const Batch& batch : batches) {
    seeded.push_back({&batch, 100 + seeded.size()});
  }
  return seeded;
}

// Towers with one copy of the parameters.
class Towers {
 public:
  Towers(const std::string& spec, const std::string& backend, int towers,
         int64_t rows, int64_t accumulate_batches = 1, int controller = 0,
         bool devices_make_mean = false, bool weighted = false) {
    TowerGroup::Options options;
    options.controller = controller;
    options.devices_make_mean = devices_make_mean;
    for (int t = 0; t < towers; ++t) backends_.push_back(MakeBackend(backend));
    if (devices_make_mean) MakeMean();
    for (int t = 0; t < towers; ++t) {
      CompileOptions compile;
      compile.backend = backends_[t].get();
      compile.batch_size = rows;
      compile.weighted = weighted;
      compile.mean = mean_.get();
      compile.mean_member = t;
      compile.keeps_mean = !devices_make_mean || t == controller;
      if (t > 0) compile.parameters_of = models_.front().get();
      models_.push_back(Compile(ParseModel(spec), compile));
      options.towers.push_back({absl::StrCat(backend, ":", t),
                                models_.back().get(), accumulate_batches});
    }
    EXPECT_THAT(models_.front()->InitializeParameters(kSeed), IsOk());
    group_ = std::make_unique<TowerGroup>(options);
  }

  TowerGroup& group() { return *group_; }
  CompiledModel& model(int tower) { return *models_[tower]; }
  int num_tensors() { return static_cast<int>(model(0).parameters().size()); }

  absl::Status Run(absl::Span<const Batch> batches,
                   absl::Span<const Batch> next = {}) {
    return group_->Run(Seeded(batches), Seeded(next));
  }
  // REQUIRES: a backend "device_of_...".
  int64_t CopiesToDevice(int tower) {
    return static_cast<FakeDevice&>(*backends_[tower])
        .streams()
        ->copies_to_device();
  }
  std::vector<float> Gradients() {
    std::vector<float> all;
    for (int i = 0; i < num_tensors(); ++i) {
      const absl::Span<float> gradient = group_->gradient(i);
      all.insert(all.end(), gradient.begin(), gradient.end());
    }
    return all;
  }

 private:
  void MakeMean() {
    std::vector<Backend*> members;
    for (const auto& backend : backends_) members.push_back(backend.get());
    auto mean = members.front()->CreateMean(members);
    ASSERT_THAT(mean, IsOk());
    mean_ = *std::move(mean);
  }

  std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<DeviceMean> mean_;
  std::vector<std::unique_ptr<CompiledModel>> models_;
  std::unique_ptr<TowerGroup> group_;
};

// The rows of one batch as `count` of equal size.
std::vector<Batch> Divide(const Batch& batch, int64_t count) {
  const int64_t rows = batch.rows / count;
  std::vector<Batch> parts;
  for (int64_t i = 0; i < count; ++i) {
    Batch& part =
        parts.emplace_back(MakeLabelledBatch(rows, Shape({kElements})));
    part.rows = rows;
    std::copy_n(batch.input().begin() + i * rows * kElements, rows * kElements,
                part.input().begin());
    std::copy_n(batch.labels().begin() + i * rows, rows, part.labels().begin());
    if (batch.Find(kBatchWeights) == nullptr) continue;
    part.Add(kBatchWeights, FLOAT32, Shape(), rows);
    std::copy_n(batch.weights().begin() + i * rows, rows,
                part.weights().begin());
  }
  return parts;
}

void ExpectNear(const std::vector<float>& found,
                const std::vector<float>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], wanted[i], kRounding) << "element " << i;
  }
}

struct Division {
  std::string backend;
  int towers;
  int64_t accumulate_batches;
  bool weighted = false;
};

// Of one part or another there may be hardly any.
void AddWeights(Batch* batch) {
  batch->Add(kBatchWeights, FLOAT32, Shape(), batch->rows);
  for (int64_t i = 0; i < batch->rows; ++i) {
    batch->weights()[i] = static_cast<float>(i % 7 == 0 ? 40 : i % 3);
  }
}

class DividedStepTest : public ::testing::TestWithParam<Division> {};

// Neither batch norm (its mean is over a tower's rows) nor dropout (each tower
// draws its own mask) is in this model: with them it could not hold.
TEST_P(DividedStepTest, EqualsTheStepOfOneTowerWithAllRows) {
  const Division& division = GetParam();
  const int64_t parts = division.towers * division.accumulate_batches;
  Batch batch = MakeBatch(24, kElements, kClasses, /*seed=*/1);
  if (division.weighted) AddWeights(&batch);
  std::vector<Batch> batches = Divide(batch, parts);
  NormalizeWeights({&batch, 1});
  NormalizeWeights(absl::MakeSpan(batches));
  Towers whole(kMlp, division.backend, 1, 24, 1, 0, false, division.weighted);
  ASSERT_THAT(whole.Run(absl::MakeConstSpan(&batch, 1)), IsOk());
  Towers divided(kMlp, division.backend, division.towers, 24 / parts,
                 division.accumulate_batches, 0, false, division.weighted);
  ASSERT_EQ(divided.group().batches_per_step(), parts);
  ASSERT_THAT(divided.Run(batches), IsOk());
  ExpectNear(divided.Gradients(), whole.Gradients());
  EXPECT_NEAR(divided.group().loss(), whole.group().loss(), kRounding);
  EXPECT_EQ(divided.group().correct(), whole.group().correct());
  EXPECT_EQ(divided.group().examples(), 24);
}

INSTANTIATE_TEST_SUITE_P(
    Divisions, DividedStepTest,
    ::testing::Values(Division{"ref", 2, 1}, Division{"ref", 3, 1},
                      Division{"ref", 1, 4}, Division{"ref", 2, 3},
                      Division{"cpu", 2, 1}, Division{"cpu", 4, 2},
                      Division{"device_of_ref", 2, 3},
                      Division{"cpu", 1, 4, /*weighted=*/true},
                      Division{"device_of_ref", 2, 3, /*weighted=*/true}));

TEST(TowerGroupTest, OneTowerIsTheModelItself) {
  const Batch batch = MakeBatch(8, kElements, kClasses, /*seed=*/1);
  Towers towers(kNormed, "ref", 1, 8);
  ASSERT_THAT(towers.Run(absl::MakeConstSpan(&batch, 1)), IsOk());
  for (int i = 0; i < towers.num_tensors(); ++i) {
    EXPECT_EQ(towers.group().gradient(i).data(),
              towers.model(0).gradient(i).data());
  }
  const auto alone = towers.model(0).Step(batch, 100);
  ASSERT_THAT(alone, IsOk());
  EXPECT_EQ(towers.group().loss(), alone->loss);
  EXPECT_EQ(towers.group().correct(), alone->correct);
}

// Counts the gradients that it hears of.
class Listener : public StepListener {
 public:
  absl::Status OnForward(double /*loss*/) override { return absl::OkStatus(); }
  void OnGradient(int /*parameter*/) override { ++heard_; }
  int heard() const { return heard_; }

 private:
  int heard_ = 0;
};

// A mean is final only when all have been added.
TEST(TowerGroupTest, OnlyAStepOfOneBatchIsHeardOf) {
  for (const auto& [towers, batches] :
       std::vector<std::pair<int, int>>{{1, 1}, {2, 1}, {1, 2}}) {
    Towers step(kMlp, "ref", towers, 4, batches);
    const bool is_one = towers * batches == 1;
    EXPECT_EQ(step.group().can_tell(), is_one);
    Listener listener;
    const auto divided =
        Divide(MakeBatch(4 * towers * batches, kElements, kClasses, /*seed=*/1),
               towers * batches);
    ASSERT_THAT(step.group().Run(Seeded(divided), /*next=*/{}, &listener),
                IsOk());
    EXPECT_EQ(listener.heard(), is_one ? step.num_tensors() : 0);
  }
}

TEST(TowerGroupTest, ShowsWhatEachTowerFound) {
  const auto batches =
      Divide(MakeBatch(16, kElements, kClasses, /*seed=*/1), 2);
  Towers towers(kMlp, "ref", 2, 8);
  ASSERT_THAT(towers.Run(batches), IsOk());
  const absl::Span<const TowerStep> steps = towers.group().steps();
  ASSERT_EQ(steps.size(), 2);
  for (int t = 0; t < 2; ++t) {
    Towers alone(kMlp, "ref", 1, 8);
    ASSERT_THAT(alone.Run(absl::MakeConstSpan(&batches[t], 1)), IsOk());
    EXPECT_EQ(steps[t].device, absl::StrCat("ref:", t));
    EXPECT_EQ(steps[t].loss, alone.group().loss());
    EXPECT_EQ(steps[t].examples, 8);
    for (int i = 0; i < towers.num_tensors(); ++i) {
      EXPECT_EQ(steps[t].gradients[i], alone.group().gradient(i));
    }
  }
  EXPECT_EQ(towers.group().loss(), (steps[0].loss + steps[1].loss) / 2);
}

TEST(TowerGroupTest, OnlyTheFirstTowersMovingAveragesAreMoved) {
  const auto batches =
      Divide(MakeBatch(16, kElements, kClasses, /*seed=*/1), 2);
  Towers towers(kNormed, "ref", 2, 8);
  ASSERT_THAT(towers.Run(batches), IsOk());
  int states = 0;
  for (int i = 0; i < towers.num_tensors(); ++i) {
    if (towers.model(0).parameters()[i].kind() == TRAINABLE) continue;
    ++states;
    EXPECT_EQ(towers.group().gradient(i), towers.model(0).gradient(i));
    EXPECT_NE(towers.group().gradient(i), towers.model(1).gradient(i));
  }
  EXPECT_EQ(states, 2);
}

TEST(TowerGroupTest, AnyControllerAndAnyRunGivesTheSameBits) {
  const auto batches =
      Divide(MakeBatch(24, kElements, kClasses, /*seed=*/1), 6);
  Towers first(kNormed, "cpu", 3, 4, 2, /*controller=*/0);
  Towers last(kNormed, "cpu", 3, 4, 2, /*controller=*/2);
  ASSERT_THAT(first.Run(batches), IsOk());
  const std::vector<float> gradients = first.Gradients();
  for (int run = 0; run < 50; ++run) {
    ASSERT_THAT(first.Run(batches), IsOk());
    ASSERT_EQ(first.Gradients(), gradients);
    ASSERT_THAT(last.Run(batches), IsOk());
    ASSERT_EQ(last.Gradients(), gradients);
  }
}

TEST(TowerGroupTest, AllReadOneCopyOfTheParameters) {
  Towers towers(kMlp, "ref", 2, 8);
  for (int i = 0; i < towers.num_tensors(); ++i) {
    EXPECT_EQ(towers.model(0).parameter(i).data(),
              towers.model(1).parameter(i).data());
  }
}

// Each thread's work is for its own device, and all read one memory.
TEST(TowerGroupTest, TowersWithDevicesGiveTheBitsOfTheHost) {
  Towers host(kNormed, "cpu", 3, 8);
  Towers devices(kNormed, "device_of_cpu", 3, 8);
  for (int step = 0; step < 4; ++step) {
    const auto batches =
        Divide(MakeBatch(24, kElements, kClasses, /*seed=*/step), 3);
    ASSERT_THAT(host.Run(batches), IsOk());
    ASSERT_THAT(devices.Run(batches), IsOk());
    EXPECT_EQ(devices.Gradients(), host.Gradients()) << "step " << step;
    EXPECT_EQ(devices.group().loss(), host.group().loss());
  }
}

// Also where the step is captured, and with several batches a step.
TEST(TowerGroupTest, DevicesMakeTheMeanThatTheHostMakes) {
  for (const int64_t accumulate_batches : {1, 2}) {
    for (const int controller : {0, 2}) {
      SCOPED_TRACE(absl::StrCat(accumulate_batches, " ", controller));
      Towers host(kNormed, "device_of_cpu", 3, 8, accumulate_batches);
      Towers devices(kNormed, "device_of_cpu", 3, 8, accumulate_batches,
                     controller, /*devices_make_mean=*/true);
      for (int step = 0; step < 4; ++step) {
        const auto batches = Divide(
            MakeBatch(24 * accumulate_batches, kElements, kClasses, step),
            3 * accumulate_batches);
        ASSERT_THAT(host.Run(batches), IsOk());
        ASSERT_THAT(devices.Run(batches), IsOk());
        ExpectNear(devices.Gradients(), host.Gradients());
        EXPECT_EQ(devices.group().loss(), host.group().loss());
        EXPECT_EQ(devices.group().steps()[1].gradients[0].data(),
                  devices.group().gradient(0).data());
      }
    }
  }
}

// That of its own next batch, also in the next step. A batch without an id is
// not known again, and goes twice.
TEST(TowerGroupTest, ABatchGoesToItsDeviceWithTheOneBefore) {
  constexpr int kSteps = 4;
  constexpr int kTowers = 2;
  constexpr int kBatches = 2;
  Towers host(kMlp, "ref", kTowers, 4, kBatches);
  Towers known(kMlp, "device_of_ref", kTowers, 4, kBatches);
  Towers unknown(kMlp, "device_of_ref", kTowers, 4, kBatches);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::vector<Batch>> batches;
    for (const int seed : {step, step, step + 1, step + 1}) {
      batches.push_back(
          Divide(MakeBatch(4 * kTowers * kBatches, kElements, kClasses, seed),
                 kTowers * kBatches));
    }
    for (int i = 0; i < kTowers * kBatches; ++i) {
      batches[0][i].id = 1 + step * kTowers * kBatches + i;
      batches[2][i].id = 1 + (step + 1) * kTowers * kBatches + i;
    }
    ASSERT_THAT(host.Run(batches[0]), IsOk());
    ASSERT_THAT(known.Run(batches[0], batches[2]), IsOk());
    ASSERT_THAT(unknown.Run(batches[1], batches[3]), IsOk());
    EXPECT_EQ(known.Gradients(), host.Gradients()) << "step " << step;
    EXPECT_EQ(unknown.Gradients(), host.Gradients()) << "step " << step;
  }
  for (int tower = 0; tower < kTowers; ++tower) {
    // All but the very first.
    EXPECT_EQ(unknown.CopiesToDevice(tower) - known.CopiesToDevice(tower),
              kSteps * kBatches - 1);
  }
}

TEST(TowerGroupTest, ATowerThatFailsHoldsNoneOfTheOthersUp) {
  auto batches = Divide(MakeBatch(16, kElements, kClasses, /*seed=*/1), 2);
  Towers towers(kMlp, "device_of_ref", 2, 8, 1, 0, /*devices_make_mean=*/true);
  batches[1].labels()[3] = kClasses;
  EXPECT_THAT(towers.Run(batches),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tower 1 on device_of_ref:1")));
  batches[1].labels()[3] = 0;
  batches[1].rows = 7;
  EXPECT_THAT(towers.Run(batches),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tower 1 on device_of_ref:1")));
  batches[1].rows = 8;
  EXPECT_THAT(towers.Run(batches), IsOk());
}

TEST(TowerGroupTest, EachTowerHasATraceOfAllItsBatches) {
  constexpr int kTowers = 2;
  constexpr int kBatches = 3;
  Towers towers(kMlp, "device_of_ref", kTowers, 2, kBatches);
  const auto batches =
      Divide(MakeBatch(2 * kTowers * kBatches, kElements, kClasses, /*seed=*/1),
             kTowers * kBatches);
  std::vector<DeviceTrace> traces(kTowers);
  ASSERT_THAT(towers.group().Run(Seeded(batches), {}, nullptr, nullptr,
                                 absl::MakeSpan(traces)),
              IsOk());
  // Not again.
  ASSERT_THAT(towers.Run(batches), IsOk());
  for (const DeviceTrace& trace : traces) {
    EXPECT_EQ(std::count_if(trace.spans.begin(), trace.spans.end(),
                            [](const DeviceSpan& span) {
                              return span.name == std::string("results");
                            }),
              kBatches);
  }
}

TEST(TowerGroupTest, AnErrorNamesItsTower) {
  for (const std::string backend : {"ref", "device_of_ref"}) {
    auto batches = Divide(MakeBatch(16, kElements, kClasses, /*seed=*/1), 2);
    batches[1].labels()[3] = kClasses;
    Towers towers(kMlp, backend, 2, 8);
    EXPECT_THAT(
        towers.Run(batches),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr(absl::StrCat("tower 1 on ", backend, ":1")),
                       HasSubstr("layer 'loss'"))));
    batches[1].labels()[3] = 0;
    EXPECT_THAT(towers.Run(batches), IsOk());
  }
}

TEST(CompiledModelTest, RefusesTheParametersOfAnotherModel) {
  const auto backend = MakeBackend("ref");
  CompileOptions options;
  options.backend = backend.get();
  options.batch_size = 2;
  const auto other = Compile(ParseModel(kNormed), options);
  options.parameters_of = other.get();
  EXPECT_THAT(CompiledModel::Create(ParseModel(kMlp), options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("with the parameters of another")));
}

}  // namespace
}  // namespace muster
