#ifndef TESTS_PS_SERVER_COORDINATOR_COORDINATOR_FIXTURE_H_
#define TESTS_PS_SERVER_COORDINATOR_COORDINATOR_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/protocol.h"
#include "gtest/gtest.h"
#include "ps_server/coordinator/coordinator.h"
#include "tests/ps_server/coordinator/ask_step.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {

// A coordinator and its clock, with verbs of the domain.
class CoordinatorTest : public testing::Test {
 protected:
  static constexpr absl::Duration kTimeout = absl::Seconds(10);

  explicit CoordinatorTest(const CoordinatorOptions& options = Options())
      : coordinator_(options) {}

  static CoordinatorOptions Options() {
    CoordinatorOptions options;
    options.worker_timeout = kTimeout;
    return options;
  }

  absl::StatusOr<RegisterReply> Register(const Sender& sender,
                                         const std::string& training = "a") {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_training_fingerprint(std::hash<std::string>()(training));
    request.set_training_text(training);
    request.set_chief(sender.task().index() == 0);
    const absl::StatusOr<RegisterReply> reply =
        coordinator_.Register(request, now_);
    if (!reply.ok() || reply->takeover() == 0) return reply;
    request.set_takeover(reply->takeover());
    return coordinator_.Register(request, now_);
  }

  absl::StatusOr<BeginEpochReply> Begin(const Sender& sender,
                                        int64_t seen_epoch = -1) {
    BeginEpochRequest request;
    *request.mutable_sender() = sender;
    request.set_seen_epoch(seen_epoch < 0 ? coordinator_.State().model_epoch()
                                          : seen_epoch);
    return coordinator_.BeginEpoch(request, now_);
  }

  CommitEpochRequest MakeCommit(const Sender& sender, int64_t epoch,
                                int64_t stop_steps) {
    CommitEpochRequest request;
    *request.mutable_sender() = sender;
    request.set_model_epoch(epoch);
    request.set_fingerprint(5);
    request.mutable_stop()->set_steps(stop_steps);
    request.set_batch_size(10);
    return request;
  }

  // Registers the chief and `workers` - 1 others, and commits an epoch.
  void StartRun(int workers, int64_t stop_steps) {
    for (int i = 0; i < workers; ++i) {
      ASSERT_THAT(Register(MakeSender(i, 100 + i)), IsOk());
    }
    const auto begun = Begin(MakeSender(0, 100));
    ASSERT_THAT(begun, IsOk());
    epoch_ = begun->model_epoch();
    ASSERT_THAT(coordinator_.CommitEpoch(
                    MakeCommit(MakeSender(0, 100), epoch_, stop_steps), now_),
                IsOk());
  }

  StepRequest MakeStep(const Sender& sender, int64_t step) {
    StepRequest request;
    *request.mutable_sender() = sender;
    request.set_model_epoch(epoch_);
    request.set_step(step);
    request.set_examples(step == 0 ? 0 : 10);
    request.set_loss(0.5);
    request.set_staleness(step == 0 ? 0 : 1);
    return request;
  }

  StepReply Step(const Sender& sender, int64_t step) {
    const auto reply = AskStep(coordinator_, MakeStep(sender, step), now_);
    EXPECT_THAT(reply, IsOk());
    return reply.value_or(StepReply());
  }

  StepReply Abandon(const Sender& sender, int64_t step) {
    StepRequest request = MakeStep(sender, step);
    request.set_abandoned(true);
    const auto reply = AskStep(coordinator_, request, now_);
    EXPECT_THAT(reply, IsOk());
    return reply.value_or(StepReply());
  }

  // The Finish of a chief that could not save.
  JobState FinishUnsaved(const Sender& sender) {
    FinishRequest request;
    *request.mutable_sender() = sender;
    request.set_reason("done");
    request.set_unsaved(true);
    const auto reply = coordinator_.Finish(request, now_);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? reply->state() : JobState();
  }

  JobState Finish(const Sender& sender, bool stop_job = false,
                  const std::string& reason = "done") {
    FinishRequest request;
    *request.mutable_sender() = sender;
    request.set_reason(reason);
    request.set_stop_job(stop_job);
    const auto reply = coordinator_.Finish(request, now_);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? reply->state() : JobState();
  }

  // Lets time pass with heartbeats from `alive`.
  void Pass(absl::Duration duration, const std::vector<Sender>& alive = {}) {
    now_ += duration;
    for (const Sender& sender : alive) EXPECT_THAT(Watch(sender, 0), IsOk());
    coordinator_.Tick(now_);
    coordinator_.TakeAnswers(now_);
  }

  absl::Status Watch(const Sender& sender, int64_t state_version,
                     absl::Duration wait = absl::ZeroDuration()) {
    WatchRequest request;
    *request.mutable_sender() = sender;
    request.set_state_version(state_version);
    request.set_max_wait_ms(
        static_cast<int32_t>(absl::ToInt64Milliseconds(wait)));
    return coordinator_.Watch(request, ++watch_id_, now_);
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Seconds(1000);
  int64_t epoch_ = 0;
  uint64_t watch_id_ = 0;
  Coordinator coordinator_;
  const Sender chief_ = MakeSender(0, 100);
  const Sender worker_ = MakeSender(1, 101);
};

}  // namespace muster

#endif  // TESTS_PS_SERVER_COORDINATOR_COORDINATOR_FIXTURE_H_
