#ifndef TESTS_PS_SERVER_COORDINATOR_COORDINATOR_JOB_H_
#define TESTS_PS_SERVER_COORDINATOR_COORDINATOR_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/rpc/protocol.h"
#include "gtest/gtest.h"
#include "ps_server/coordinator/coordinator.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {

// A coordinator and its clock, with verbs for jobs in which steps wait for each
// other. Task 0 is the chief; batches have kBatch rows.
class CoordinatorJob {
 public:
  static constexpr int64_t kBatch = 10;
  static constexpr absl::Duration kTimeout = absl::Seconds(10);
  static constexpr int32_t kWaitMs = 5000;

  explicit CoordinatorJob(const CoordinatorOptions& options = Options())
      : coordinator_(options) {}

  // Registers `workers` tasks and commits an epoch.
  void Start(int workers, const ReplicationSpec& replication,
             const StopSpec& stop, int64_t global_step = 0) {
    for (int i = 0; i < workers; ++i) Register(MakeSender(i, 100 + i));
    ASSERT_THAT(Commit(replication, stop, global_step), IsOk());
  }

  void Register(const Sender& sender) {
    RegisterRequest request;
    request.set_protocol_version(kProtocolVersion);
    *request.mutable_sender() = sender;
    request.set_chief(sender.task().index() == 0);
    auto reply = coordinator_.Register(request, now_);
    ASSERT_THAT(reply, IsOk());
    if (reply->takeover() != 0) {
      request.set_takeover(reply->takeover());
      reply = coordinator_.Register(request, now_);
      ASSERT_THAT(reply, IsOk());
    }
    Settle();
  }

  absl::Status Commit(const ReplicationSpec& replication, const StopSpec& stop,
                      int64_t global_step = 0) {
    BeginEpochRequest begin;
    *begin.mutable_sender() = MakeSender(0, 100);
    begin.set_seen_epoch(epoch_);
    const auto begun = coordinator_.BeginEpoch(begin, now_);
    EXPECT_THAT(begun, IsOk());
    if (!begun.ok()) return begun.status();
    epoch_ = begun->model_epoch();
    CommitEpochRequest commit;
    *commit.mutable_sender() = begin.sender();
    commit.set_model_epoch(epoch_);
    commit.set_global_step(global_step);
    commit.set_batch_size(kBatch);
    commit.set_epoch_examples(kBatch);
    *commit.mutable_ledger() = ledger_;
    *commit.mutable_stop() = stop;
    *commit.mutable_replication() = replication;
    (*commit.mutable_ps_incarnations())[1] = 71;
    const absl::Status status = coordinator_.CommitEpoch(commit, now_).status();
    Settle();
    return status;
  }

  // Of the next commits, as from a manifest.
  void SetLedger(const RowLedger& ledger) { ledger_ = ledger; }

  StepRequest MakeStep(const Sender& sender, int64_t step,
                       int64_t round = 0) const {
    StepRequest request;
    *request.mutable_sender() = sender;
    request.set_model_epoch(epoch_);
    request.set_step(step);
    request.set_round(round);
    request.set_examples(step == 0 ? 0 : kBatch);
    request.set_max_wait_ms(kWaitMs);
    return request;
  }

  // Sends a Step; answers come by `answer`.
  absl::Status Send(const StepRequest& request, uint64_t id) {
    const absl::Status status = coordinator_.Step(request, id, now_);
    Settle();
    return status;
  }

  // Asks, or reports `step` and asks; nothing if the answer waits.
  std::optional<StepReply> Step(const Sender& sender, int64_t step,
                                int64_t round = 0) {
    const uint64_t id = Number(sender);
    EXPECT_THAT(Send(MakeStep(sender, step, round), id), IsOk());
    return Take(sender);
  }

  // The id of the sender's next Step, which is its newest from here on.
  uint64_t Number(const Sender& sender) {
    return IdOf(sender, ++newest_[sender.task().index()]);
  }

  // The answer to the sender's newest Step, once.
  std::optional<StepReply> Take(const Sender& sender) {
    const auto it = answers_.find(IdOf(sender, newest_[sender.task().index()]));
    if (it == answers_.end()) return std::nullopt;
    std::optional<StepReply> reply = std::move(it->second);
    answers_.erase(it);
    return reply;
  }

  void Finish(const Sender& sender, bool stop_job = false) {
    FinishRequest request;
    *request.mutable_sender() = sender;
    request.set_stop_job(stop_job);
    ASSERT_THAT(coordinator_.Finish(request, now_), IsOk());
    Settle();
  }

  absl::StatusOr<PauseRoundsReply> Hold(bool hold, int index = 0) {
    PauseRoundsRequest request;
    *request.mutable_sender() = MakeSender(index, 100 + index);
    request.set_model_epoch(epoch_);
    request.set_pause(hold);
    auto reply = coordinator_.PauseRounds(request, now_);
    Settle();
    return reply;
  }

  void AskForSave(bool leaving) {
    RequestSaveRequest request;
    *request.mutable_sender() = MakeSender(1, 71, "ps");
    request.set_leaving(leaving);
    ASSERT_THAT(coordinator_.RequestSave(request, now_), IsOk());
    Settle();
  }

  // Lets time pass, with heartbeats of `alive` half-way.
  void Pass(absl::Duration duration, const std::vector<Sender>& alive = {}) {
    now_ += duration / 2;
    for (const Sender& sender : alive) {
      WatchRequest request;
      *request.mutable_sender() = sender;
      ASSERT_THAT(coordinator_.Watch(request, ++watch_, now_), IsOk());
    }
    Settle();
    now_ += duration / 2;
    Settle();
  }

  // As CoordinationServer after each batch of calls.
  void Settle() {
    coordinator_.Tick(now_);
    coordinator_.TakeAnswers(now_);
    for (StepAnswer& answer : coordinator_.TakeStepAnswers(now_)) {
      answers_[answer.step_id] = std::move(answer.reply);
    }
  }

  WorkerState WorkerOf(int index) const {
    return coordinator_.State().workers(index);
  }

  static CoordinatorOptions Options() {
    CoordinatorOptions options;
    options.worker_timeout = kTimeout;
    return options;
  }
  // The cluster lists the workers.
  static CoordinatorOptions OptionsOf(int workers) {
    CoordinatorOptions options = Options();
    JobDef* const job = options.cluster.add_job();
    job->set_name("worker");
    for (int i = 0; i < workers; ++i) (*job->mutable_tasks())[i] = "host:1";
    return options;
  }

  static uint64_t IdOf(const Sender& sender, uint64_t id) {
    return (static_cast<uint64_t>(sender.task().index()) << 32) + id;
  }

  Coordinator& coordinator() { return coordinator_; }
  absl::Time now() const { return now_; }
  const std::map<uint64_t, StepReply>& answers() const { return answers_; }

 private:
  absl::Time now_ = absl::UnixEpoch() + absl::Seconds(1000);
  int64_t epoch_ = 0;
  RowLedger ledger_;
  uint64_t watch_ = 0;
  std::map<int32_t, uint64_t> newest_;
  std::map<uint64_t, StepReply> answers_;
  Coordinator coordinator_;
};

inline ReplicationSpec MakeSyncSpec(int aggregate, int total, int least = 0) {
  ReplicationSpec spec;
  spec.mutable_sync()->set_replicas_to_aggregate(aggregate);
  spec.mutable_sync()->set_total_replicas(total);
  spec.mutable_sync()->set_min_replicas(least);
  return spec;
}

inline ReplicationSpec MakeBoundedSpec(int bound) {
  ReplicationSpec spec;
  spec.mutable_bounded_staleness()->set_bound(bound);
  return spec;
}

inline StopSpec StopAtStep(int64_t steps) {
  StopSpec stop;
  stop.set_steps(steps);
  return stop;
}

}  // namespace muster

#endif  // TESTS_PS_SERVER_COORDINATOR_COORDINATOR_JOB_H_
