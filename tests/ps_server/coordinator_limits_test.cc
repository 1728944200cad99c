// What a buggy or hostile peer may not do to the coordinator.
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/coordinator.h"
#include "tests/ps_server/ask_step.h"
#include "tests/ps_server/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

class CoordinatorLimitsTest : public testing::Test {
 protected:
  absl::Status Register(const Sender& sender) {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_chief(sender.task().index() == 0);
    return coordinator_.Register(request, now_).status();
  }

  absl::StatusOr<BeginEpochReply> Begin(int64_t seen_epoch) {
    BeginEpochRequest request;
    *request.mutable_sender() = chief_;
    request.set_seen_epoch(seen_epoch);
    return coordinator_.BeginEpoch(request, now_);
  }

  absl::Status Watch(uint64_t watch_id) {
    WatchRequest request;
    *request.mutable_sender() = MakeSender(1, 7, "ps");
    request.set_state_version(coordinator_.state_version());
    request.set_max_wait_ms(5000);
    return coordinator_.Watch(request, watch_id, now_);
  }

  CommitEpochRequest MakeCommit(int64_t epoch) const {
    CommitEpochRequest request;
    *request.mutable_sender() = chief_;
    request.set_model_epoch(epoch);
    request.mutable_stop()->set_steps(10);
    request.mutable_stop()->set_epochs(1);
    request.set_epoch_examples(100);
    request.set_batch_size(10);
    return request;
  }

  const absl::Time now_ = absl::UnixEpoch() + absl::Seconds(1000);
  const Sender chief_ = MakeSender(0, 100);
  Coordinator coordinator_;
};

TEST_F(CoordinatorLimitsTest, MembersAreBounded) {
  // By a restore: that many registrations would each answer with all states.
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(0), IsOk());
  CommitEpochRequest commit = MakeCommit(1);
  for (size_t i = 1; i < Coordinator::kMaxTasks; ++i) {
    *commit.add_workers()->mutable_sender() =
        MakeSender(static_cast<int32_t>(i), 1);
  }
  ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  EXPECT_THAT(
      Register(MakeSender(1 << 20, 1)),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("4096")));
  EXPECT_THAT(Register(MakeSender(7, 2)), IsOk()) << "it is known";
}

TEST_F(CoordinatorLimitsTest, WaitingWatchesAreBounded) {
  for (size_t i = 0; i < Coordinator::kMaxWatches; ++i) {
    ASSERT_THAT(Watch(i), IsOk());
  }
  EXPECT_THAT(
      Watch(Coordinator::kMaxWatches),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("watch")));
  EXPECT_EQ(coordinator_.TakeAnswers(now_ + absl::Seconds(5)).size(),
            Coordinator::kMaxWatches);
  EXPECT_THAT(Watch(0), IsOk());
}

TEST_F(CoordinatorLimitsTest, AnEpochNeverOverflows) {
  ASSERT_THAT(Register(chief_), IsOk());
  for (const int64_t seen : {kHuge, int64_t{-1}}) {
    EXPECT_THAT(Begin(seen), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("seen epoch")));
  }
  const auto begun = Begin(4);
  ASSERT_THAT(begun, IsOk());
  EXPECT_EQ(begun->model_epoch(), 5);
}

TEST_F(CoordinatorLimitsTest, ACommitOfHugeNumbersIsRefused) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(0), IsOk());
  for (const auto& spoil :
       std::vector<std::function<void(CommitEpochRequest&)>>{
           [](CommitEpochRequest& r) { r.set_global_step(kHuge); },
           [](CommitEpochRequest& r) { r.set_examples(kHuge); },
           [](CommitEpochRequest& r) { r.set_batch_size(kHuge); },
           [](CommitEpochRequest& r) { r.mutable_stop()->set_steps(kHuge); },
           [](CommitEpochRequest& r) { r.add_workers()->set_steps(kHuge); },
           [](CommitEpochRequest& r) { r.add_workers()->set_examples(-1); },
           [](CommitEpochRequest& r) {
             r.add_workers()->mutable_position()->set_kind(
                 std::string(300, 'x'));
           },
           [](CommitEpochRequest& r) {
             r.mutable_start_position()->set_kind(std::string(300, 'x'));
           },
           [](CommitEpochRequest& r) {
             r.add_workers()->set_staleness_sum(kHuge);
           },
           [](CommitEpochRequest& r) {
             for (size_t i = 0; i <= Coordinator::kMaxTasks; ++i) {
               r.add_workers();
             }
           }}) {
    CommitEpochRequest request = MakeCommit(1);
    spoil(request);
    EXPECT_THAT(coordinator_.CommitEpoch(request, now_),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("commit epoch")));
  }
  EXPECT_EQ(coordinator_.phase(), INITIAL);
  EXPECT_THAT(coordinator_.CommitEpoch(MakeCommit(1), now_), IsOk());
}

TEST_F(CoordinatorLimitsTest, AReportOfHugeNumbersIsRefused) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(0), IsOk());
  ASSERT_THAT(coordinator_.CommitEpoch(MakeCommit(1), now_), IsOk());
  StepRequest request;
  *request.mutable_sender() = chief_;
  request.set_model_epoch(1);
  request.set_step(1);
  request.set_staleness(kHuge);
  EXPECT_THAT(
      AskStep(coordinator_, request, now_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("out of range")));
}

}  // namespace
}  // namespace muster
