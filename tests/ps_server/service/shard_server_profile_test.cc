#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/rpc/call_table.h"
#include "common/rpc/part_number.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_server.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/ps_server/shard/sync_shard.h"
#include "tests/testing/await_reply.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// A server of a model, of two namespaces' one, that two workers train.
class ShardServerProfileTest : public testing::Test {
 protected:
  void Serve(const DefineRequest& define) {
    ShardServer::Options options;
    options.shard.incarnation = kPsIncarnation;
    options.shard.max_namespaces = 1;
    options.clock = &clock_;
    server_ = std::make_unique<ShardServer>(options);
    for (const Sender& sender : {chief_, a_}) {
      EXPECT_THAT(AwaitCall(*server_, kHelloCall, MakeHello(sender), Soon()),
                  IsOk());
    }
    EXPECT_THAT(AwaitCall(*server_, kDefineCall, define, Soon()), IsOk());
    server_->Load(MakeLoad(chief_, SyncShard::AllSlices(),
                           BytesOf(std::vector<float>(kModel, 1.0F))),
                  Soon(), [](const auto& reply) { EXPECT_TRUE(reply.ok()); });
    EXPECT_THAT(AwaitCall(*server_, kSealCall, MakeSeal(chief_), Soon()),
                IsOk());
  }

  absl::Time Soon() const { return clock_.Now() + absl::Seconds(30); }

  absl::StatusOr<ProfileReply> Profile(ProfileRequest::Action action,
                                       const std::string& space = "") {
    ProfileRequest request;
    request.set_action(action);
    request.set_namespace_(space);
    return AwaitCall(*server_, kProfileCall, request, Soon());
  }

  void Push(int64_t step, int64_t round = 0) {
    for (const auto part : {SyncShard::kFirstBlock, SyncShard::kSecondBlock,
                            SyncShard::kAverage}) {
      Frame<PushPart> push = parts_.MakePart(
          a_, step, round, std::vector<float>(kModel, -2), part);
      push.header.set_pulled_version(step - 1);
      server_->Push(push, Soon(),
                    [](const auto& reply) { EXPECT_THAT(reply, IsOk()); });
    }
  }
  void Pull(const StepToken& token = StepToken()) {
    PullRequest request = MakePull(a_, SyncShard::AllSlices());
    *request.mutable_token() = token;
    server_->Pull(request, Soon(),
                  [](const auto& reply) { EXPECT_THAT(reply, IsOk()); });
  }

  // "lane: name" of what was recorded.
  std::vector<std::string> End() {
    const auto ended = Profile(ProfileRequest::END);
    EXPECT_THAT(ended, IsOk());
    if (!ended.ok()) return {};
    part_ = ended->part();
    std::vector<std::string> spans;
    for (const ProfileEvent& event : part_.events()) {
      spans.push_back(part_.lanes(event.lane()) + ": " +
                      part_.names(event.name()));
    }
    return spans;
  }
  std::set<uint64_t> Numbers() const {
    std::set<uint64_t> numbers;
    for (const ProfileEvent& event : part_.events()) {
      if (event.part() != 0) numbers.insert(event.part());
    }
    return numbers;
  }
  static std::set<uint64_t> NumbersOf(int64_t step) {
    return {PartNumber(101, step, 0, 0), PartNumber(101, step, 0, 1),
            PartNumber(101, step, 0, 2)};
  }

  const MonotonicClock clock_{};
  std::unique_ptr<ShardServer> server_;
  SyncShard parts_{SyncShard::MakeModel()};
  ProfilePart part_;
  const Sender chief_ = MakeSender(0, 100);
  const Sender a_ = MakeSender(1, 101);
};

TEST_F(ShardServerProfileTest, TheClock_IsTheServers) {
  Serve(SyncShard::MakeModel());
  const int64_t before = absl::ToUnixMicros(clock_.Now());
  const auto read = Profile(ProfileRequest::READ_CLOCK);
  ASSERT_THAT(read, IsOk());
  EXPECT_GE(read->now_us(), before);
  EXPECT_LE(read->now_us(), absl::ToUnixMicros(clock_.Now()));
}

TEST_F(ShardServerProfileTest, PartsOfAsync_AreTheirOwnUpdates) {
  Serve(SyncShard::MakeModel());
  Push(1);
  ASSERT_THAT(Profile(ProfileRequest::BEGIN), IsOk());
  Pull();
  Push(2);
  EXPECT_THAT(End(),
              IsSupersetOf({"shard: pull of /job:worker/task:1",
                            "shard: push of /job:worker/task:1", "shard: check",
                            "shard: apply", "shard: answer"}));
  EXPECT_EQ(Numbers(), NumbersOf(2)) << "no others";
}

TEST_F(ShardServerProfileTest, PartsOfSync_AreInTheUpdateOfTheirRound) {
  Serve(SyncShard::MakeSyncModel());
  Pull(MakeToken(1));
  ASSERT_THAT(Profile(ProfileRequest::BEGIN), IsOk());
  Push(1, 1);
  Pull(MakeToken(2, {MakeChosen(a_, 1)}));
  Push(2, 2);
  Pull(MakeToken(3, {MakeChosen(a_, 2)}));
  Push(3, 3);
  const std::vector<std::string> spans = End();
  EXPECT_THAT(spans, Contains("updates of rounds: by /job:worker/task:1"));
  EXPECT_THAT(spans, Contains("rounds: round"));
  EXPECT_THAT(spans, Contains("shard: keep"));
  EXPECT_THAT(spans, Contains("shard: apply"));
  std::set<uint64_t> both = NumbersOf(1);
  both.merge(NumbersOf(2));
  EXPECT_EQ(Numbers(), both) << "round 3 is open";
}

TEST_F(ShardServerProfileTest, ASave_IsASpan) {
  Serve(SyncShard::MakeModel());
  ASSERT_THAT(Profile(ProfileRequest::BEGIN), IsOk());
  BeginSnapshotRequest begin;
  *begin.mutable_sender() = chief_;
  *begin.mutable_fence() = MakeFence();
  const auto begun = AwaitCall(*server_, kBeginSnapshotCall, begin, Soon());
  ASSERT_THAT(begun, IsOk());
  EndSnapshotRequest end;
  *end.mutable_sender() = chief_;
  *end.mutable_fence() = MakeFence();
  end.set_snapshot(begun->snapshot());
  ASSERT_THAT(AwaitCall(*server_, kEndSnapshotCall, end, Soon()), IsOk());
  EXPECT_THAT(End(), Contains("saves: save"));
}

TEST_F(ShardServerProfileTest, EndWithoutABegin_IsNotFound) {
  Serve(SyncShard::MakeModel());
  EXPECT_THAT(
      Profile(ProfileRequest::END).status(),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("nothing is recorded")));
  ASSERT_THAT(Profile(ProfileRequest::BEGIN), IsOk());
  End();
  EXPECT_THAT(Profile(ProfileRequest::END).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ShardServerProfileTest, AnotherBegin_BeginsAnew) {
  Serve(SyncShard::MakeModel());
  ASSERT_THAT(Profile(ProfileRequest::BEGIN), IsOk());
  Push(1);
  ASSERT_THAT(Profile(ProfileRequest::BEGIN), IsOk());
  Push(2);
  End();
  EXPECT_EQ(Numbers(), NumbersOf(2));
}

TEST_F(ShardServerProfileTest, AnotherNamespace_IsNotRecorded) {
  Serve(SyncShard::MakeModel());
  EXPECT_THAT(
      Profile(ProfileRequest::BEGIN, "other").status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("other")));
  HelloRequest hello = MakeHello(MakeSender(7, 700));
  hello.mutable_sender()->set_namespace_("other");
  ASSERT_THAT(AwaitCall(*server_, kHelloCall, hello, Soon()), IsOk());
  ASSERT_THAT(Profile(ProfileRequest::BEGIN, "other"), IsOk());
  Push(1);
  const auto ended = Profile(ProfileRequest::END, "other");
  ASSERT_THAT(ended, IsOk());
  EXPECT_EQ(ended->part().events_size(), 0);
}

TEST_F(ShardServerProfileTest, ANamespaceThatEnds_TakesItsRecordingAlong) {
  Serve(SyncShard::MakeModel());
  ASSERT_THAT(Profile(ProfileRequest::BEGIN), IsOk());
  EndNamespaceRequest end;
  end.set_force(true);
  ASSERT_THAT(AwaitCall(*server_, kEndNamespaceCall, end, Soon()), IsOk());
  EXPECT_THAT(Profile(ProfileRequest::END).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ShardServerProfileTest, AnUnknownAction_IsRefused) {
  Serve(SyncShard::MakeModel());
  EXPECT_THAT(Profile(static_cast<ProfileRequest::Action>(9)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is musterctl newer?")));
}

}  // namespace
}  // namespace muster
