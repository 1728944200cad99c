// The harm that a buggy or hostile peer cannot do to the coordinator.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "common/rpc/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/coordinator/coordinator.h"
#include "tests/ps_server/coordinator/ask_step.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

class CoordinatorLimitsTest : public testing::Test {
 protected:
  absl::Status Register(const Sender& sender) {
    return Register(sender, coordinator_);
  }

  absl::Status Register(const Sender& sender, Coordinator& coordinator) {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_chief(sender.task().index() == 0);
    return coordinator.Register(request, now_).status();
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

TEST_F(CoordinatorLimitsTest, MembersThatAreNotListedAreBounded) {
  CoordinatorOptions options;
  options.max_unlisted_tasks = 3;
  JobDef* const job = options.cluster.add_job();
  job->set_name("chief");
  (*job->mutable_tasks())[0] = "localhost:1";
  Coordinator coordinator(options);
  for (int32_t i = 0; i < 3; ++i) {
    ASSERT_THAT(Register(MakeSender(i, 1), coordinator), IsOk());
  }
  EXPECT_THAT(Register(MakeSender(1 << 20, 1), coordinator),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("3")));
  EXPECT_THAT(Register(MakeSender(2, 1), coordinator), IsOk()) << "it is known";
  EXPECT_THAT(Register(MakeSender(0, 1, "chief"), coordinator), IsOk())
      << "it is listed";
}

TEST_F(CoordinatorLimitsTest, ATaskThatTheClusterDoesNotListIsRefused) {
  CoordinatorOptions options;
  JobDef* const job = options.cluster.add_job();
  job->set_name("worker");
  for (int32_t i = 0; i < 2; ++i) (*job->mutable_tasks())[i] = "localhost:1";
  Coordinator coordinator(options);
  EXPECT_THAT(Register(MakeSender(77, 1), coordinator),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("does not list /job:worker/task:77")));
  EXPECT_EQ(coordinator.State().workers_size(), 0);
  EXPECT_THAT(Register(MakeSender(1, 1), coordinator), IsOk());
}

// Whatever a task says of itself.
TEST_F(CoordinatorLimitsTest, WorkerOneIsNoChief) {
  RegisterRequest request;
  request.set_protocol_version(kProtocolVersion);
  *request.mutable_sender() = MakeSender(1, 1);
  request.set_chief(true);
  ASSERT_THAT(coordinator_.Register(request, now_), IsOk());
  EXPECT_FALSE(coordinator_.State().has_chief());
  BeginEpochRequest begin;
  *begin.mutable_sender() = request.sender();
  EXPECT_THAT(coordinator_.BeginEpoch(begin, now_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is not the chief")));
}

TEST_F(CoordinatorLimitsTest, WhatIsKeptOfASenderHasKnownFieldsOnly) {
  Sender sender = chief_;
  const std::string blob(1 << 20, 'x');
  sender.GetReflection()->MutableUnknownFields(&sender)->AddLengthDelimited(
      99, blob);
  ASSERT_THAT(Register(sender), IsOk());
  EXPECT_LT(coordinator_.State().ByteSizeLong(), 1000);
}

TEST_F(CoordinatorLimitsTest, ARestoreLocksNobodyOut) {
  ASSERT_THAT(Register(chief_), IsOk());
  for (const int32_t first : {0, 10000}) {
    const auto begun = Begin(coordinator_.State().model_epoch());
    ASSERT_THAT(begun, IsOk());
    CommitEpochRequest commit = MakeCommit(begun->model_epoch());
    for (int32_t i = 0; i < static_cast<int32_t>(Members::kMaxTasks); ++i) {
      *commit.add_workers()->mutable_sender() = MakeSender(first + i, 0);
    }
    ASSERT_THAT(coordinator_.CommitEpoch(commit, now_), IsOk());
  }
  EXPECT_EQ(coordinator_.State().workers_size(), 1 + Members::kMaxTasks)
      << "those of the first manifest are forgotten";
  EXPECT_THAT(Register(MakeSender(1 << 20, 1)), IsOk());
}

TEST_F(CoordinatorLimitsTest, ARestoreOfInventedWorkersIsRefused) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(0), IsOk());
  const std::string long_name(1 << 20, 'w');
  const std::vector<std::vector<Sender>> invented = {
      {MakeSender(0, 0, long_name)},
      {MakeSender(0, 0, "ps")},
      {MakeSender(-1, 0)},
      {MakeSender(1, 0), MakeSender(1, 0)}};
  for (const std::vector<Sender>& senders : invented) {
    CommitEpochRequest commit = MakeCommit(1);
    for (const Sender& sender : senders) {
      *commit.add_workers()->mutable_sender() = sender;
    }
    EXPECT_THAT(coordinator_.CommitEpoch(commit, now_),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("commit epoch: worker ")));
  }
  CommitEpochRequest commit = MakeCommit(1);
  WorkerState* const worker = commit.add_workers();
  *worker->mutable_sender() = MakeSender(1, 0);
  worker->GetReflection()->MutableUnknownFields(worker)->AddLengthDelimited(
      99, long_name);
  EXPECT_THAT(coordinator_.CommitEpoch(commit, now_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes")));
}

TEST_F(CoordinatorLimitsTest, AnEpochDoesNotJump) {
  ASSERT_THAT(Register(chief_), IsOk());
  ASSERT_THAT(Begin(7), IsOk());
  EXPECT_THAT(Begin(999'999'999'999'990),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no count of restores")));
  EXPECT_EQ(Begin(8)->model_epoch(), 9);
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

// Or it would be lost, and be back, in turns.
TEST_F(CoordinatorLimitsTest, WhoOnlyWatchesIsHeardOfInTime) {
  CoordinatorOptions options;
  options.worker_timeout = absl::Seconds(2);
  Coordinator coordinator(options);
  ASSERT_THAT(Register(chief_, coordinator), IsOk());
  WatchRequest request;
  *request.mutable_sender() = chief_;
  request.set_state_version(coordinator.state_version());
  request.set_max_wait_ms(5000);
  ASSERT_THAT(coordinator.Watch(request, 1, now_), IsOk());
  EXPECT_EQ(coordinator.TakeAnswers(now_ + absl::Seconds(1)).size(), 1);
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
             r.mutable_ledger()->add_undone()->set_rows(1);  // at the front
           },
           [](CommitEpochRequest& r) { r.mutable_ledger()->set_front(kHuge); },
           [](CommitEpochRequest& r) {
             r.add_workers()->set_staleness_sum(kHuge);
           },
           [](CommitEpochRequest& r) {
             for (size_t i = 0; i <= Members::kMaxTasks; ++i) {
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
