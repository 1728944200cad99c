// Nothing that is not finite is saved, and what is read of a cut is the cut's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/train_dir.h"
#include "common/rpc/protocol.h"
#include "ps_server/service/shard_server.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/session/fake_coordination.h"
#include "worker/checkpoint/model_saver.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTrainDir[] = "/train";
constexpr uint64_t kPsIncarnation = 11;
constexpr uint64_t kIncarnation = 7;
// Finite; twice it is not.
constexpr float kHuge = 3e38f;

// A shard with a tensor of two blocks, SGD of rate 1, on a fake disk.
class ModelSaverFiniteTest : public ::testing::Test {
 protected:
  void Load(bool allow_non_finite) {
    TensorDef def;
    def.set_name("dense/weights");
    def.set_dtype(FLOAT32);
    def.add_shape(kElements);
    def.set_kind(TRAINABLE);
    placed_.tensors = {def};
    placed_.placement = {{{0, 0, kElements}}};
    placed_.definition.fingerprint = 5;
    placed_.definition.optimizer.set_name("sgd");
    auto* rate = placed_.definition.optimizer.add_attr();
    rate->set_name("learning_rate");
    rate->set_f(1);
    placed_.definition.allow_non_finite = allow_non_finite;
    SayHello();
    ASSERT_THAT(client_.SetModel(placed_.tensors, placed_.placement), IsOk());
    client_.SetEpoch(1, {kPsIncarnation});
    const std::vector<float> values(kElements, 0.0f);
    ASSERT_THAT(client_.chief().LoadModel(
                    placed_.definition, {ViewOf(absl::MakeConstSpan(values))}),
                IsOk());
  }

  void SayHello() {
    HelloRequest hello;
    hello.set_protocol_version(kProtocolVersion);
    hello.mutable_sender()->set_incarnation(kIncarnation);
    ASSERT_THAT(AwaitReply<HelloReply>([&](ReplyCallback<HelloReply> done) {
                  client_.Hello(0, hello, std::move(done));
                }),
                IsOk());
  }

  // The last element goes down by `value`.
  void Push(float value) {
    std::vector<float> gradient(kElements, 0.0f);
    gradient.back() = value;
    std::vector<float> pulled(kElements);
    ASSERT_THAT(client_.PullAndWait({MutableViewOf(absl::MakeSpan(pulled))}),
                IsOk());
    ASSERT_THAT(
        client_.PushAndWait(++step_, {ViewOf(absl::MakeConstSpan(gradient))}),
        IsOk());
  }

  ModelSaver::Options SaverOptions() {
    ModelSaver::Options options;
    options.clock = &clock_;
    options.file_system = &files_;
    options.train_dir = kTrainDir;
    options.client = &client_;
    options.coordination = &coordination_;
    options.placed = &placed_;
    return options;
  }
  absl::StatusOr<std::string> Save() {
    ModelSaver saver(SaverOptions());
    saver.Enter(1, absl::ZeroDuration());
    const absl::StatusOr<PendingSave> save = saver.Begin();
    if (!save.ok()) return save.status();
    return save->write();
  }

  static constexpr int64_t kElements = 100000;

  static ParameterClient::Options ClientOptions(const Clock* clock) {
    ParameterClient::Options options;
    options.ps_names = {"/job:ps/task:0"};
    options.clock = clock;
    options.sender.set_incarnation(kIncarnation);
    return options;
  }
  static std::vector<std::unique_ptr<ParameterLink>> Links(const Clock* clock) {
    ShardServer::Options shard;
    shard.shard.incarnation = kPsIncarnation;
    shard.clock = clock;
    std::vector<std::unique_ptr<ParameterLink>> links;
    links.push_back(std::make_unique<ShardServer>(shard));
    return links;
  }

  const MonotonicClock clock_{};
  FakeFileSystem files_{kTrainDir};
  PlacedModel placed_;
  FakeCoordination coordination_{/*steps=*/0};
  ParameterClient client_{ClientOptions(&clock_), Links(&clock_)};
  int64_t step_ = 0;
};

TEST_F(ModelSaverFiniteTest, WhatHasOverflowedIsNotSavedAndTheOlderOneStays) {
  Load(/*allow_non_finite=*/false);
  Push(kHuge);
  const auto saved = Save();
  ASSERT_THAT(saved, IsOk());
  // The gradient is finite, the update rule's sum is not.
  Push(kHuge);
  EXPECT_THAT(Save(),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("'dense/weights'"),
                             HasSubstr("element 99999 of 100000 is -inf"),
                             HasSubstr("non_finite.allow"))));
  // Whole, and nothing beside it.
  EXPECT_THAT(CheckpointReader::Open(&files_, *saved), IsOk());
  EXPECT_THAT(files_.List(kTrainDir),
              IsOkAndHolds(ElementsAre(CheckpointName(0))));
}

TEST_F(ModelSaverFiniteTest, WhatIsAllowedToOverflowIsSaved) {
  Load(/*allow_non_finite=*/true);
  Push(kHuge);
  Push(kHuge);
  EXPECT_THAT(Save(), IsOk());
}

TEST_F(ModelSaverFiniteTest, WhatIsPushedAfterTheCut_IsNotRead) {
  Load(/*allow_non_finite=*/false);
  Push(1);
  ModelSaver saver(SaverOptions());
  saver.Enter(1, absl::ZeroDuration());
  const absl::StatusOr<PendingSave> cut = saver.Begin();
  ASSERT_THAT(cut, IsOk());
  Push(1);
  std::vector<float> values(kElements);
  ASSERT_THAT(cut->read({MutableViewOf(absl::MakeSpan(values))}), IsOk());
  EXPECT_EQ(values.front(), 0);
  EXPECT_EQ(values.back(), -1);
  cut->discard();
  EXPECT_THAT(cut->write(), StatusIs(absl::StatusCode::kAborted))
      << "its copies are freed";
}

}  // namespace
}  // namespace muster
