// Parameters that are read where real shards keep them, over each link.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/cluster/placement.h"
#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/forwarding_parameter_link.h"
#include "tests/testing/linked_shard.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/parameter_client.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kShards = 2;
constexpr int64_t kEpoch = 1;
constexpr float kStart = 4;

// Two shards with tensors of odd sizes, one of them of more than a block.
class ParametersInPlaceTest : public testing::TestWithParam<LinkKind> {
 protected:
  using Values = std::vector<std::vector<float>>;

  ParametersInPlaceTest() {
    for (const int64_t size :
         {int64_t{3}, kBlockElements + 5, int64_t{17}, int64_t{1}}) {
      tensors_.push_back(
          MakeTensor(absl::StrCat("tensor", tensors_.size()), {size}));
      start_.emplace_back(size, kStart);
      gradients_.emplace_back(size, -1.0f);
    }
    placement_ = PlaceWhole(tensors_, {0, 1, 1, 0}).value();
    for (int i = 0; i < kShards; ++i) {
      ShardServer::Options options;
      options.shard.incarnation = kPsIncarnation;
      options.shard.shares_memory = true;
      options.clock = &clock_;
      shards_.push_back(std::make_unique<LinkedShard>(GetParam(), options));
    }
    client_ = Connect(0);
  }

  std::unique_ptr<ParameterClient> Connect(int worker) {
    ParameterClient::Options options;
    options.sender = MakeSender(worker, 100 + worker);
    options.clock = &clock_;
    std::vector<std::unique_ptr<ParameterLink>> links;
    for (int i = 0; i < kShards; ++i) {
      options.ps_names.push_back(absl::StrCat("/job:ps/task:", i));
      links.push_back(
          std::make_unique<ForwardingParameterLink>(&shards_[i]->link()));
    }
    auto client = std::make_unique<ParameterClient>(options, std::move(links));
    EXPECT_THAT(client->SetModel(tensors_, placement_), IsOk());
    for (int i = 0; i < kShards; ++i) {
      EXPECT_THAT(AwaitReply<HelloReply>([&](auto done) {
                    client->Hello(i, MakeHello(options.sender), done);
                  }),
                  IsOk());
    }
    client->SetEpoch(kEpoch, {kPsIncarnation, kPsIncarnation});
    return client;
  }

  absl::Status Load(PullMode pull) {
    ModelDefinition definition;
    definition.replication.mutable_async()->set_pull(pull);
    return Load(definition);
  }
  absl::Status Load(ModelDefinition definition) {
    definition.optimizer = MakeDefine({}, {}).optimizer();
    return client_->chief().LoadModel(definition, Views(start_));
  }

  static std::vector<TensorView> Views(const Values& all) {
    std::vector<TensorView> views;
    for (const auto& values : all) {
      views.push_back(ViewOf(absl::MakeConstSpan(values)));
    }
    return views;
  }

  void ExpectAll(const ParametersInPlace& in_place, float value) {
    ASSERT_EQ(in_place.values.size(), tensors_.size());
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const TensorView& view = in_place.values[i];
      EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 64, 0);
      const absl::Span<const float> values(
          reinterpret_cast<const float*>(view.data),
          view.size_bytes / sizeof(float));
      ASSERT_EQ(values.size(), start_[i].size());
      EXPECT_THAT(values, Each(value)) << "tensor " << i;
    }
  }

  const MonotonicClock clock_{};
  std::vector<TensorDef> tensors_;
  Placement placement_;
  Values start_;
  Values gradients_;
  std::vector<std::unique_ptr<LinkedShard>> shards_;
  std::unique_ptr<ParameterClient> client_;
};

class MappedTest : public ParametersInPlaceTest {};

TEST_P(MappedTest, ByRoundNothingChangesBeforeThePullOfTheNext) {
  ModelDefinition definition;
  definition.replication.mutable_sync();
  ASSERT_THAT(Load(definition), IsOk());
  const auto mine = client_->MapParameters(InPlaceOrder::kByRound);
  ASSERT_THAT(mine, IsOk());
  StepToken token;
  token.set_round(1);
  const auto pull = [&] {
    const auto begun = client_->BeginPullInPlace(token);
    return begun.ok() ? (*begun)->Finish() : begun.status();
  };
  ASSERT_THAT(pull(), IsOk());
  const auto push = client_->PushAndWait(1, Views(gradients_), /*round=*/1);
  ASSERT_THAT(push, IsOk());
  EXPECT_EQ(push->new_versions, nullptr) << "the next step must pull";
  ExpectAll(*mine, kStart);
  token.set_round(2);
  ChosenStep* const chosen = token.add_chosen();
  *chosen->mutable_sender() = MakeSender(0, 100);
  chosen->set_step(1);
  ASSERT_THAT(pull(), IsOk());
  ExpectAll(*mine, kStart + 1);
}

TEST_P(MappedTest, EveryPushIsSeenAtOnceByAllWorkers) {
  ASSERT_THAT(Load(IN_PLACE), IsOk());
  const std::unique_ptr<ParameterClient> other = Connect(1);
  const auto mine = client_->MapParameters();
  const auto others = other->MapParameters();
  ASSERT_THAT(mine, IsOk());
  ASSERT_THAT(others, IsOk());
  ExpectAll(*mine, kStart);
  ASSERT_THAT(client_->PullVersions(), IsOk());
  ASSERT_THAT(client_->PushAndWait(1, Views(gradients_)), IsOk());
  ExpectAll(*mine, kStart + 1);
  ExpectAll(*others, kStart + 1);
}

TEST_P(MappedTest, ATensorInPiecesIsReadAsOne) {
  placement_[1] = {{1, 0, kBlockElements}, {0, kBlockElements, 5}};
  client_ = Connect(0);
  for (int64_t i = 0; i < kBlockElements + 5; ++i) {
    start_[1][i] = static_cast<float>(i);
  }
  ASSERT_THAT(Load(IN_PLACE), IsOk());
  const auto mine = client_->MapParameters();
  ASSERT_THAT(mine, IsOk());
  ASSERT_THAT(client_->PullVersions(), IsOk());
  ASSERT_THAT(client_->PushAndWait(1, Views(gradients_)), IsOk());
  for (float& value : start_[1]) value += 1;
  const TensorView& view = mine->values[1];
  const auto* const values = reinterpret_cast<const float*>(view.data);
  EXPECT_EQ(std::vector<float>(values, values + kBlockElements + 5), start_[1]);
  // Its neighbours are where they should be.
  EXPECT_EQ(*reinterpret_cast<const float*>(mine->values[2].data), kStart + 1);
  EXPECT_EQ(*reinterpret_cast<const float*>(mine->values[3].data), kStart + 1);
}

// The values that a step reads are those that the push before was answered for.
TEST_P(MappedTest, StalenessCountsTheUpdatesOfOthers) {
  ASSERT_THAT(Load(IN_PLACE), IsOk());
  const std::unique_ptr<ParameterClient> other = Connect(1);
  for (ParameterClient* const client : {client_.get(), other.get()}) {
    ASSERT_THAT(client->MapParameters(), IsOk());
    ASSERT_THAT(client->PullVersions(), IsOk());
  }
  for (int64_t step = 1; step <= 3; ++step) {
    const auto outcome = client_->PushAndWait(step, Views(gradients_));
    ASSERT_THAT(outcome, IsOk());
    EXPECT_EQ(outcome->max_staleness, 0);
    ASSERT_NE(outcome->new_versions, nullptr);
    EXPECT_EQ(outcome->new_versions->parts[0][0], step);
  }
  const auto outcome = other->PushAndWait(1, Views(gradients_));
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->max_staleness, 3);
  EXPECT_EQ(outcome->mean_staleness, 3);
}

TEST_P(MappedTest, WantsAPullOfVersionsFirst) {
  ASSERT_THAT(Load(IN_PLACE), IsOk());
  ASSERT_THAT(client_->MapParameters(), IsOk());
  EXPECT_THAT(client_->PushAndWait(1, Views(gradients_)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("nothing was pulled")));
}

TEST_P(MappedTest, OutlivesTheShard) {
  ASSERT_THAT(Load(IN_PLACE), IsOk());
  const auto mapped = client_->MapParameters();
  ASSERT_THAT(mapped, IsOk());
  client_.reset();
  shards_.clear();
  ExpectAll(*mapped, kStart);
}

TEST_P(MappedTest, AnotherEpochIsFenced) {
  ASSERT_THAT(Load(IN_PLACE), IsOk());
  client_->SetEpoch(kEpoch + 1, {kPsIncarnation, kPsIncarnation});
  EXPECT_THAT(client_->MapParameters(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("epoch 2")));
}

TEST_P(MappedTest, AModelThatIsPulledConsistentlyIsNotThere) {
  ASSERT_THAT(Load(CONSISTENT), IsOk());
  EXPECT_THAT(client_->MapParameters(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("without replication.sync or ")));
}

TEST_P(MappedTest, AnotherModelIsRefused) {
  ASSERT_THAT(Load(IN_PLACE), IsOk());
  tensors_[0].set_shape(0, 100);
  ASSERT_THAT(
      client_->SetModel(tensors_, PlaceWhole(tensors_, {0, 1, 1, 0}).value()),
      IsOk());
  EXPECT_THAT(client_->MapParameters(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("/job:ps/task:0")));
}

// Without certificates all workers are one caller.
TEST_P(MappedTest, ManyOthersWithOffers_TakeNothingFromAWorker) {
  ASSERT_THAT(Load(IN_PLACE), IsOk());
  for (int i = 0; GetParam() == LinkKind::kSharedMemory && i < 40; ++i) {
    for (const auto& shard : shards_) {
      ASSERT_THAT(shard->listener()->OfferTo({}), IsOk());
    }
  }
  ASSERT_THAT(client_->MapParameters(), IsOk());
  ASSERT_THAT(client_->PullVersions(), IsOk());
  EXPECT_THAT(client_->PushAndWait(1, Views(gradients_)), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Links, MappedTest,
                         testing::Values(LinkKind::kInProcess,
                                         LinkKind::kSharedMemory),
                         testing::PrintToStringParamName());

class OtherLinkTest : public ParametersInPlaceTest {};

TEST_P(OtherLinkTest, HasNoWayToThem) {
  ASSERT_THAT(Load(IN_PLACE), IsOk());
  EXPECT_THAT(client_->MapParameters(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("through shared memory only")));
}

INSTANTIATE_TEST_SUITE_P(Links, OtherLinkTest, testing::Values(LinkKind::kGrpc),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace muster
