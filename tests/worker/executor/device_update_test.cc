#include "worker/executor/device_update.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/optimizer/update_rule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/fake_device.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 4;
constexpr int64_t kElements = 6;
constexpr int64_t kClasses = 3;
// Each another order of the same work.
constexpr uint64_t kSeeds = 20;
// More than the calls, or the pieces of work, of what is tested.
constexpr int kMostCalls = 400;

constexpr char kModel[] =
    "name: 'mlp' input_shape: 6 "
    "layer { name: 'hidden' type: 'dense' attr { name: 'units' i: 5 } } "
    "layer { name: 'active' type: 'tanh' } "
    "layer { name: 'logits' type: 'dense' attr { name: 'units' i: 3 } } "
    "layer { name: 'loss' type: 'softmax_cross_entropy' }";

OptimizerSpec Adam() {
  OptimizerSpec spec;
  spec.set_name("adam");
  return spec;
}

// A shard's tensors of a model, each slot in two runs.
class Tensors {
 public:
  Tensors(CompiledModel& model, const UpdateRule& rule) {
    for (size_t i = 0; i < model.parameters().size(); ++i) {
      const absl::Span<float> value = model.parameter(static_cast<int>(i));
      streams_.emplace_back();
      streams_.back().emplace_back(value.begin(), value.end());
      for (const SlotDef& slot : rule.slots()) {
        streams_.back().emplace_back(value.size(), slot.initial_value);
      }
    }
  }

  std::vector<ResidentTensor> held() {
    std::vector<ResidentTensor> held;
    for (std::vector<std::vector<float>>& streams : streams_) {
      ResidentTensor tensor;
      tensor.parameter = absl::MakeSpan(streams[0]);
      for (size_t slot = 1; slot < streams.size(); ++slot) {
        const absl::Span<float> all = absl::MakeSpan(streams[slot]);
        tensor.slots.push_back({all.first(2), all.subspan(2)});
      }
      held.push_back(tensor);
    }
    return held;
  }

  // By `rule`, of the host.
  void Update(const UpdateRule& rule, size_t tensor, const BlockUpdate& update,
              absl::Span<const float> gradient) {
    std::vector<float*> slots;
    std::vector<std::vector<float>>& streams = streams_[tensor];
    for (size_t i = 1; i < streams.size(); ++i) {
      slots.push_back(streams[i].data());
    }
    rule.Apply(update, gradient.data(), streams[0].data(), slots,
               static_cast<int64_t>(gradient.size()));
  }

  const std::vector<float>& parameter(size_t i) const { return streams_[i][0]; }
  size_t size() const { return streams_.size(); }
  bool operator==(const Tensors& other) const {
    return streams_ == other.streams_;
  }

 private:
  std::vector<std::vector<std::vector<float>>> streams_;  // [tensor][stream]
};

std::unique_ptr<CompiledModel> CompileOn(Backend* backend, bool use_graphs) {
  CompileOptions options;
  options.backend = backend;
  options.batch_size = kRows;
  options.use_graphs = use_graphs;
  auto model = Compile(ParseModel(kModel), options);
  EXPECT_THAT(model->InitializeParameters(1), IsOk());
  return model;
}

// A model on a fake device, and its shard.
class Held {
 public:
  explicit Held(uint64_t seed = 1, bool use_graphs = true)
      : device_(MakeBackend("ref"), seed),
        rule_(*CreateUpdateRule(Adam())),
        model_(CompileOn(&device_, use_graphs)),
        shard_(*model_, *rule_),
        update_(
            *model_->UpdateOnDevice(*device_.CreateRule(rule_.get()),
                                    static_cast<int>(rule_->slots().size()))) {}

  absl::Status Take() { return update_->Take(shard_.held()); }
  absl::StatusOr<CompiledModel::StepResult> Compute(const Batch& batch) {
    return model_->Step(batch, /*step_seed=*/0);
  }
  // Updates everything, as a push does.
  void Update(const BlockUpdate& update) {
    for (size_t i = 0; i < shard_.size(); ++i) {
      const auto n = static_cast<int64_t>(shard_.parameter(i).size());
      update_->Update(static_cast<int>(i), 0, n, update);
    }
  }
  absl::Status WriteBack() { return update_->WriteBack(shard_.held()); }

  FakeStreams& streams() { return *device_.streams(); }
  CompiledModel& model() { return *model_; }
  DeviceUpdate& update() { return *update_; }
  Tensors& shard() { return shard_; }

 private:
  FakeDevice device_;
  const std::unique_ptr<UpdateRule> rule_;
  const std::unique_ptr<CompiledModel> model_;
  Tensors shard_;
  DeviceUpdate* const update_;
};

// The same on the host.
class Plain {
 public:
  Plain()
      : backend_(MakeBackend("ref")),
        rule_(*CreateUpdateRule(Adam())),
        model_(CompileOn(backend_.get(), /*use_graphs=*/true)),
        shard_(*model_, *rule_) {}

  CompiledModel::StepResult Compute(const Batch& batch) {
    for (size_t i = 0; i < shard_.size(); ++i) {
      const std::vector<float>& value = shard_.parameter(i);
      std::copy(value.begin(), value.end(),
                model_->parameter(static_cast<int>(i)).begin());
    }
    auto result = model_->Step(batch, /*step_seed=*/0);
    EXPECT_THAT(result, IsOk());
    return *result;
  }
  void Update(const BlockUpdate& update) {
    for (size_t i = 0; i < shard_.size(); ++i) {
      shard_.Update(*rule_, i, update, model_->gradient(static_cast<int>(i)));
    }
  }

  CompiledModel& model() { return *model_; }
  const Tensors& shard() const { return shard_; }

 private:
  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<UpdateRule> rule_;
  const std::unique_ptr<CompiledModel> model_;
  Tensors shard_;
};

Batch BatchOf(int64_t step) {
  return MakeBatch(kRows, kElements, kClasses, static_cast<uint64_t>(step));
}

void ExpectSameSteps(Held* held, Plain* plain, int64_t first, int64_t last) {
  for (int64_t t = first; t <= last; ++t) {
    const Batch batch = BatchOf(t);
    const auto found = held->Compute(batch);
    ASSERT_THAT(found, IsOk());
    EXPECT_EQ(found->loss, plain->Compute(batch).loss) << "step " << t;
    EXPECT_TRUE(held->update().gradients_are_finite());
    held->Update({t});
    plain->Update({t});
  }
}

TEST(DeviceUpdateTest, AnyOrderGivesTheBitsOfTheHost) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const bool use_graphs : {false, true}) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", graphs ", use_graphs));
      Held held(seed, use_graphs);
      Plain plain;
      ASSERT_THAT(held.Take(), IsOk());
      ExpectSameSteps(&held, &plain, 1, 3);
      ASSERT_THAT(held.WriteBack(), IsOk());
      EXPECT_TRUE(held.shard() == plain.shard());
      ExpectSameSteps(&held, &plain, 4, 5);
      ASSERT_THAT(held.WriteBack(), IsOk());
      EXPECT_TRUE(held.shard() == plain.shard());
      EXPECT_EQ(held.streams().launches(), use_graphs ? 2 * 4 : 0);
    }
  }
}

TEST(DeviceUpdateTest, AnUpdateOfEverythingIsOneLaunch) {
  Held held(1, /*use_graphs=*/false);
  ASSERT_THAT(held.Take(), IsOk());
  ASSERT_THAT(held.Compute(BatchOf(1)), IsOk());
  const int64_t before = held.streams().computed();
  held.Update({1});
  ASSERT_THAT(held.WriteBack(), IsOk());
  EXPECT_EQ(held.streams().computed(), before + 1);
}

TEST(DeviceUpdateTest, AnUpdateThatWasStartedIsMadeOnce) {
  Held held;
  Plain plain;
  held.update().Start();
  ASSERT_THAT(held.Take(), IsOk());
  for (int64_t t = 1; t <= 3; ++t) {
    ExpectSameSteps(&held, &plain, t, t);
    held.update().Start();
  }
  ASSERT_THAT(held.WriteBack(), IsOk());
  EXPECT_TRUE(held.shard() == plain.shard());
}

TEST(DeviceUpdateTest, WhatAStartFailsOfIsTold) {
  Held held;
  ASSERT_THAT(held.Take(), IsOk());
  ASSERT_THAT(held.Compute(BatchOf(1)), IsOk());
  held.Update({1});
  // The first makes the device current.
  held.streams().FailCall(2);
  held.update().Start();
  EXPECT_THAT(held.WriteBack(), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(held.Compute(BatchOf(2)), StatusIs(absl::StatusCode::kInternal));
}

TEST(DeviceUpdateTest, BlocksMayHaveUpdatesOfTheirOwn) {
  Held held;
  Plain plain;
  ASSERT_THAT(held.Take(), IsOk());
  ASSERT_THAT(held.Compute(BatchOf(1)), IsOk());
  plain.Compute(BatchOf(1));
  // The first two alike, the third as a later one, the last not at all.
  Tensors wanted = plain.shard();
  const auto adam = CreateUpdateRule(Adam());
  for (const auto& [tensor, update] : std::vector<std::pair<int, BlockUpdate>>{
           {2, {7, 0.5}}, {0, {1}}, {1, {1}}}) {
    const absl::Span<const float> gradient = plain.model().gradient(tensor);
    held.update().Update(tensor, 0, static_cast<int64_t>(gradient.size()),
                         update);
    wanted.Update(**adam, tensor, update, gradient);
  }
  ASSERT_THAT(held.WriteBack(), IsOk());
  EXPECT_TRUE(held.shard() == wanted);
}

TEST(DeviceUpdateTest, FetchesWhatTheStepWasComputedFrom) {
  Held held;
  Plain plain;
  ASSERT_THAT(held.Take(), IsOk());
  ExpectSameSteps(&held, &plain, 1, 3);
  ASSERT_THAT(held.Compute(BatchOf(4)), IsOk());
  plain.Compute(BatchOf(4));
  ASSERT_THAT(held.update().FetchTensors(), IsOk());
  for (int i = 0; i < static_cast<int>(plain.shard().size()); ++i) {
    EXPECT_TRUE(held.model().parameter(i) == plain.model().parameter(i)) << i;
    EXPECT_TRUE(held.model().gradient(i) == plain.model().gradient(i)) << i;
  }
}

// Also what Start put into kCompute before the step.
TEST(DeviceUpdateTest, AnUpdateIsInTheTraceOfTheNextStep) {
  Held held;
  ASSERT_THAT(held.Take(), IsOk());
  for (int64_t t = 1; t <= 4; ++t) {
    DeviceTrace trace;
    ASSERT_THAT(
        held.model().Step(BatchOf(t), 0, {nullptr, nullptr, {}, &trace}),
        IsOk());
    std::string names;
    for (const DeviceSpan& span : trace.spans) {
      absl::StrAppend(&names, span.name, " ");
      EXPECT_GT(span.end, span.begin) << span.name;
    }
    EXPECT_EQ(names, absl::StrCat(t == 1 ? "" : "update ",
                                  "batch forward loss backward results "));
    held.Update({t});
    // Else it is the first thing of the step.
    if (t % 2 == 0) held.update().Start();
  }
}

// Several hooks that look at the same tensors.
TEST(DeviceUpdateTest, FetchesOnceAStep) {
  Held held;
  Plain plain;
  ASSERT_THAT(held.Take(), IsOk());
  for (int64_t t = 1; t <= 3; ++t) {
    ExpectSameSteps(&held, &plain, t, t);
    // A fetch that fails is not taken for done.
    held.streams().FailCall(3);
    EXPECT_THAT(held.update().FetchTensors(),
                StatusIs(absl::StatusCode::kInternal));
    ASSERT_THAT(held.update().FetchTensors(), IsOk());
    held.streams().FailCall(1);
    EXPECT_THAT(held.update().FetchTensors(), IsOk());
    held.streams().FailCall(0);
    EXPECT_TRUE(held.model().gradient(0) == plain.model().gradient(0)) << t;
  }
}

TEST(DeviceUpdateTest, ARefusedStepChangesNothing) {
  Held held;
  Plain plain;
  ASSERT_THAT(held.Take(), IsOk());
  ExpectSameSteps(&held, &plain, 1, 2);
  Batch bad = BatchOf(3);
  bad.input()[3] = std::numeric_limits<float>::infinity();
  ASSERT_THAT(held.Compute(bad), IsOk());
  EXPECT_FALSE(held.update().gradients_are_finite());
  ExpectSameSteps(&held, &plain, 3, 4);
  ASSERT_THAT(held.WriteBack(), IsOk());
  EXPECT_TRUE(held.shard() == plain.shard());
}

TEST(DeviceUpdateTest, WhatIsTakenAgainReplacesWhatWasHeld) {
  Held held;
  Plain plain;
  ASSERT_THAT(held.Take(), IsOk());
  const Tensors before = held.shard();
  ASSERT_THAT(held.Compute(BatchOf(9)), IsOk());
  held.Update({1});
  ASSERT_THAT(held.Take(), IsOk());
  EXPECT_TRUE(held.shard() == before);
  ExpectSameSteps(&held, &plain, 1, 2);
}

TEST(DeviceUpdateTest, NoStepBeforeTheParametersAreTaken) {
  Held held;
  EXPECT_THAT(held.Compute(BatchOf(1)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("not on the device")));
}

TEST(DeviceUpdateTest, NamesTensorsOfAnotherModel) {
  Held held;
  std::vector<ResidentTensor> tensors = held.shard().held();
  tensors.pop_back();
  EXPECT_THAT(held.update().Take(tensors),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("wanted those of the model")));
}

// Take, a step, an update and the way back, with the n-th call failing, or the
// n-th work: some of them says so, and nothing comes back as if it were whole.
void ExpectTold(const std::function<void(FakeStreams*)>& let_fail,
                bool* has_failed) {
  Held held;
  Plain plain;
  let_fail(&held.streams());
  absl::Status status = held.Take();
  if (status.ok()) status = held.Compute(BatchOf(1)).status();
  if (status.ok()) {
    held.Update({1});
    status = held.WriteBack();
  }
  *has_failed = !status.ok();
  if (*has_failed) return;
  plain.Compute(BatchOf(1));
  plain.Update({1});
  EXPECT_TRUE(held.shard() == plain.shard());
}

TEST(DeviceUpdateTest, EachFailingCallIsTold) {
  bool has_failed = true;
  int n = 1;
  for (; has_failed && n < kMostCalls; ++n) {
    SCOPED_TRACE(absl::StrCat("call ", n));
    ExpectTold([n](FakeStreams* streams) { streams->FailCall(n); },
               &has_failed);
  }
  EXPECT_GT(n, 20);
  EXPECT_LT(n, kMostCalls);
}

TEST(DeviceUpdateTest, EachFailingWorkIsTold) {
  bool has_failed = true;
  int n = 1;
  for (; has_failed && n < kMostCalls; ++n) {
    SCOPED_TRACE(absl::StrCat("work ", n));
    ExpectTold([n](FakeStreams* streams) { streams->FailWork(n); },
               &has_failed);
  }
  EXPECT_GT(n, 20);
  EXPECT_LT(n, kMostCalls);
}

}  // namespace
}  // namespace muster
