// A train loop whose parameters are updated on the device, and the shard of
// this process: a refused step, and one that fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement.h"
#include "common/optimizer/update_rule.h"
#include "common/rpc/protocol.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/fake_device.h"
#include "tests/worker/input/poisoned_data_set.h"
#include "tests/worker/model/test_models.h"
#include "tests/worker/step/grants.h"
#include "worker/client/parameter_client.h"
#include "worker/hook/nan_guard.h"
#include "worker/step/make_exchange.h"
#include "worker/step/train_loop.h"
#include "worker/tower/computed_step.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kClasses = 8;
// Unshuffled: step k has rows 2k - 2 and 2k - 1.
constexpr int64_t kRows = 2;
constexpr int64_t kBadStep = 3;
// Its last one.
constexpr int64_t kBadRow = kRows * kBadStep - 1;
constexpr uint64_t kIncarnation = 7;
constexpr uint64_t kSeed = 4;
// Adam's slots.
constexpr int64_t kSlots = 2;
// In which the thread that prepares batches comes to run.
constexpr int64_t kMostSteps = 10000;

OptimizerSpec Adam() {
  OptimizerSpec spec;
  spec.set_name("adam");
  return spec;
}

// A worker with its shard; on the device, or as ever.
class Training {
 public:
  explicit Training(bool on_device, const ProfiledSteps& profiled = {})
      : device_(MakeBackend("ref"), kSeed), rule_(*CreateUpdateRule(Adam())) {
    CompileOptions compile;
    compile.backend = &device_;
    compile.batch_size = kRows;
    model_ =
        Compile(ParseModel(absl::StrCat("name: 'tiny' input_shape: 2 "
                                        "layer { name: 'logits' type: 'dense' "
                                        "        attr { name: 'units' i: ",
                                        kClasses,
                                        " } } layer { name: 'loss' "
                                        "type: 'softmax_cross_entropy' }")),
                compile);
    TowerGroup::Options towers;
    towers.towers.push_back({"fake:0", model_.get()});
    towers_ = std::make_unique<TowerGroup>(towers);
    ConnectShard();
    StartLoop(on_device, profiled);
  }

  absl::StatusOr<StepReport> Run(int64_t number) {
    return loop_->Run(
        number, GrantOf(number, kRows), [&](const ComputedStep& computed) {
          StepRecord step;
          step.step = number;
          step.loss = computed.loss;
          step.tensors = computed.tensors;
          step.gradients_are_finite = computed.gradients_are_finite;
          step.fetch_tensors = computed.fetch_tensors;
          return guard_.BeforePush(step);
        });
  }

  // As an evaluation reads them.
  absl::StatusOr<std::vector<float>> Pull() {
    std::vector<float> weights(2 * kClasses);
    std::vector<float> bias(kClasses);
    RETURN_IF_ERROR(
        client_->PullAndWait({MutableViewOf(absl::MakeSpan(weights)),
                              MutableViewOf(absl::MakeSpan(bias))}));
    weights.insert(weights.end(), bias.begin(), bias.end());
    return weights;
  }

  FakeStreams& streams() { return *device_.streams(); }
  std::vector<std::string> said() const { return said_.lines(); }

 private:
  void ConnectShard() {
    ShardServer::Options shard;
    shard.shard.incarnation = kIncarnation;
    shard.clock = &clock_;
    std::vector<std::unique_ptr<ParameterLink>> links;
    links.push_back(std::make_unique<ShardServer>(shard));
    ParameterClient::Options options;
    options.ps_names = {"/job:ps/task:0"};
    options.clock = &clock_;
    options.sender.mutable_task()->set_job("worker");
    options.sender.set_incarnation(5);
    client_ = std::make_unique<ParameterClient>(options, std::move(links));
    HelloRequest hello;
    hello.set_protocol_version(kProtocolVersion);
    *hello.mutable_sender() = options.sender;
    client_->Hello(0, hello,
                   [](const auto& reply) { EXPECT_THAT(reply, IsOk()); });
    EXPECT_THAT(
        client_->SetModel(model_->parameters(),
                          PlaceWhole(model_->parameters(), {0, 0}).value()),
        IsOk());
    client_->SetEpoch(1, {kIncarnation});
    ModelDefinition definition;
    definition.optimizer = Adam();
    definition.replication.mutable_async();
    const std::vector<float> zeros(2 * kClasses);
    EXPECT_THAT(
        client_->chief().LoadModel(
            definition, {ViewOf(absl::MakeConstSpan(zeros)),
                         ViewOf(absl::MakeConstSpan(zeros).first(kClasses))}),
        IsOk());
  }

  void StartLoop(bool on_device, const ProfiledSteps& profiled) {
    ExchangeOptions exchange;
    exchange.client = client_.get();
    exchange.towers = towers_.get();
    exchange.replication.mutable_async();
    exchange.may_push_early = false;
    if (on_device) {
      exchange.update =
          *model_->UpdateOnDevice(*device_.CreateRule(rule_.get()),
                                  static_cast<int>(rule_->slots().size()));
    }
    exchange_ = MakeStepExchange(exchange);
    TrainLoop::Options options;
    options.exchange = exchange_.get();
    options.towers = towers_.get();
    options.data_set = &data_set_;
    options.input.batch_size = kRows;
    options.input.shuffle = false;
    options.profiled = profiled;
    auto loop = TrainLoop::Create(options);
    EXPECT_THAT(loop, IsOk());
    loop_ = *std::move(loop);
  }

  const MonotonicClock clock_{};
  const PoisonedDataSet data_set_{kClasses, kBadRow,
                                  std::numeric_limits<float>::infinity()};
  FakeDevice device_;
  const std::unique_ptr<UpdateRule> rule_;
  std::unique_ptr<CompiledModel> model_;
  std::unique_ptr<TowerGroup> towers_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<StepExchange> exchange_;
  std::unique_ptr<TrainLoop> loop_;
  ReportedLines said_;
  NanGuard guard_{
      {"/job:worker/task:0", /*max_refusals=*/3, nullptr, said_.reporter()}};
};

TEST(TrainLoopUpdateTest, ARefusedStepIsTheSameAndChangesNothing) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  Training device(/*on_device=*/true);
  Training host(/*on_device=*/false);
  for (int64_t step = 1; step <= kBadStep + 1; ++step) {
    const auto found = device.Run(step);
    const auto wanted = host.Run(step);
    ASSERT_THAT(found, IsOk());
    ASSERT_THAT(wanted, IsOk());
    EXPECT_EQ(found->abandoned, step == kBadStep);
    EXPECT_EQ(wanted->abandoned, step == kBadStep);
    EXPECT_EQ(found->staleness, wanted->staleness);
    // Evaluations in the middle, and none.
    if (step == 2) continue;
    EXPECT_EQ(*device.Pull(), *host.Pull()) << "after step " << step;
  }
  EXPECT_THAT(device.said(), Contains(HasSubstr("'logits/weights' is")));
  EXPECT_EQ(device.said(), host.said());
}

TEST(TrainLoopUpdateTest, TheUpdateIsOnTheDeviceWhenTheStepEnds) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  Training device(/*on_device=*/true);
  ASSERT_THAT(device.Run(1), IsOk());
  const int64_t computed = device.streams().computed();
  ASSERT_THAT(device.streams().Synchronize(), IsOk());
  EXPECT_EQ(device.streams().computed(), computed + 1);
}

TEST(TrainLoopUpdateTest, OnlyAStepOfTheProfileIsTimed) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  Training device(/*on_device=*/true, {/*first=*/2, /*count=*/1});
  for (int64_t step : {1, 2, 4}) {
    const auto report = device.Run(step);
    ASSERT_THAT(report, IsOk());
    if (step != 2) {
      EXPECT_THAT(report->times.devices, IsEmpty());
      continue;
    }
    ASSERT_THAT(report->times.devices, SizeIs(1));
    const DeviceTrace& trace = report->times.devices[0];
    EXPECT_EQ(trace.device, "fake:0");
    EXPECT_THAT(trace.spans, Not(IsEmpty()));
    for (const DeviceSpan& span : trace.spans) {
      EXPECT_GE(span.begin, report->times.compute_begun) << span.name;
      EXPECT_LE(span.end, report->times.computed) << span.name;
    }
    // And of the update after it.
    EXPECT_EQ(device.streams().timed_records(), 1 + 2 * trace.spans.size() + 2);
  }
}

// As soon as the input is that far ahead.
TEST(TrainLoopUpdateTest, TheNextBatchGoesToTheDeviceWhileAStepComputes) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  Training device(/*on_device=*/true);
  Training host(/*on_device=*/false);
  // A step copies nothing in but its batch and the next one, the first one also
  // the parameters and Adam's slots.
  int64_t steps = 0;
  int64_t before = kSlots + 1;
  int64_t copies = 0;
  while (copies < 2 && steps < kMostSteps) {
    ASSERT_THAT(device.Run(++steps), IsOk());
    copies = device.streams().copies_to_device() - before;
    before += copies;
  }
  EXPECT_EQ(copies, 2);
  ASSERT_THAT(device.Run(++steps), IsOk());
  EXPECT_LT(device.streams().copies_to_device() - before, 2) << "its own again";
  const int64_t then = steps + kBadStep;
  while (steps < then) ASSERT_THAT(device.Run(++steps), IsOk());
  for (int64_t step = 1; step <= steps; ++step) {
    ASSERT_THAT(host.Run(step), IsOk());
  }
  EXPECT_EQ(*device.Pull(), *host.Pull());
}

TEST(TrainLoopUpdateTest, NothingIsReadOfADeviceThatHasFailed) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  Training device(/*on_device=*/true);
  ASSERT_THAT(device.Run(1), IsOk());
  device.streams().FailWork(1);
  EXPECT_THAT(device.Run(2), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(device.Pull(), Not(IsOk()));
}

TEST(TrainLoopUpdateTest, ACallThatFailsIsToldAndChangesNothing) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  Training device(/*on_device=*/true);
  Training host(/*on_device=*/false);
  ASSERT_THAT(device.Run(1), IsOk());
  ASSERT_THAT(host.Run(1), IsOk());
  EXPECT_EQ(*device.Pull(), *host.Pull());
  // A call of the step, when it has begun; before it is captured.
  device.streams().FailCall(2);
  EXPECT_THAT(device.Run(2), StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(*device.Pull(), *host.Pull());
  ASSERT_THAT(device.Run(2), IsOk());
  ASSERT_THAT(host.Run(2), IsOk());
  EXPECT_EQ(*device.Pull(), *host.Pull());
}

}  // namespace
}  // namespace muster
