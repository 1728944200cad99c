#include "tests/simulation/sim_ps.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "common/cluster/task_id.h"
#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"
#include "tests/testing/copied_frame.h"

namespace muster {
namespace {

// As ps_server/main: for peers that ask a last time.
constexpr absl::Duration kFarewell = absl::Seconds(1);
// As ps_server/job_watcher.
constexpr absl::Duration kWatch = absl::Seconds(5);
constexpr absl::Duration kWatchPause = absl::Milliseconds(200);
constexpr absl::Duration kConfirmTimeout = absl::Seconds(1);
constexpr int kConfirmAttempts = 3;
// As ps_server/ps_task and save_asker.
constexpr absl::Duration kSavePatience = absl::Seconds(6);
constexpr absl::Duration kAnswerTime = absl::Milliseconds(500);
constexpr absl::Duration kLeavePatience = absl::Milliseconds(500);
// CoordinatorOptions.worker_timeout.
constexpr absl::Duration kEndPatience = absl::Seconds(30);

ShardOptions ShardOptionsOf(const SimPs::Options& options) {
  ShardOptions shard;
  shard.ps_index = options.task;
  shard.incarnation = options.incarnation;
  return shard;
}

const auto kServeRequestSave = [](SimPs& ps, const RequestSaveRequest& asked,
                                  const ReplyCallback<RequestSaveReply>& done) {
  done(ps.Handle(asked));
};

const auto kServeWatch = [](SimPs& ps, const WatchRequest& watch,
                            ReplyCallback<JobState> done) {
  ps.Watch(watch, std::move(done));
};

}  // namespace

SimPs::SimPs(const Options& options)
    : options_(options),
      process_(options.simulator),
      caller_(&process_, options.network, options.task),
      shard_(ShardOptionsOf(options)),
      bugs_(options.bug, options.task, options.incarnation, &shard_) {
  ServeShard();
  if (options_.task != 0) return;
  CoordinatorOptions coordinator;
  coordinator.expected_tasks = options_.num_workers;
  coordinator_ = std::make_unique<Coordinator>(coordinator);
  ServeCoordinator();
}

void SimPs::ServeShard() {
  ParameterShard::VisitCalls([this](const auto& row, auto method) {
    using Row = std::decay_t<decltype(row)>;
    calls_.Handle(row, [this, method](const typename Row::Request& request,
                                      absl::Time, const auto& done) {
      done((shard_.*method)(request));
    });
  });
  const auto serve_own = [this](const auto& row) {
    using Row = std::decay_t<decltype(row)>;
    calls_.Handle(row,
                  [this](const typename Row::Request& request, absl::Time,
                         const auto& done) { done(this->Handle(request)); });
  };
  serve_own(kHelloCall);
  serve_own(kDefineCall);
  serve_own(kSealCall);
  serve_own(kBeginSnapshotCall);
  serve_own(kEndSnapshotCall);
}

void SimPs::ServeCoordinator() {
  Coordinator::VisitCalls([this](const auto& row, auto method) {
    using Row = std::decay_t<decltype(row)>;
    calls_.Handle(row, [this, method](const typename Row::Request& request,
                                      absl::Time, const auto& done) {
      const auto reply = (coordinator_.get()->*method)(request, Now());
      this->Advance();
      done(reply);
    });
  });
  const auto serve_own = [this](const auto& row) {
    using Row = std::decay_t<decltype(row)>;
    calls_.Handle(row,
                  [this](const typename Row::Request& request, absl::Time,
                         const auto& done) { done(this->Handle(request)); });
  };
  serve_own(kRegisterCall);
  serve_own(kBeginEpochCall);
  serve_own(kCommitEpochCall);
  serve_own(kFinishCall);
  serve_own(kPauseRoundsCall);
  calls_.Handle(kStepCall,
                [this](const StepRequest& request, absl::Time, auto done) {
                  Step(request, std::move(done));
                });
  calls_.Handle(kWatchCall,
                [this](const WatchRequest& request, absl::Time, auto done) {
                  Watch(request, std::move(done));
                });
}

void SimPs::Start() {
  alive_ = true;
  options_.network->set_ps(options_.task, this, &process_);
  if (options_.task != 0) WatchJob();
}

void SimPs::Die() {
  if (!alive_) return;
  alive_ = false;
  process_.Continue();
  if (options_.network->ps(options_.task) == this) {
    options_.network->set_ps(options_.task, nullptr, nullptr);
  }
  caller_.Die();
  watches_.clear();
  steps_.clear();
}

// ---- The shard --------------------------------------------------------

absl::StatusOr<HelloReply> SimPs::Handle(HelloRequest request) {
  absl::StatusOr<HelloReply> reply = shard_.Hello(request);
  if (!reply.ok()) return reply;
  *reply->mutable_state() = bugs_.Shown(reply->state());
  reply->set_ps_incarnation(bugs_.ShownIncarnation());
  return reply;
}

absl::StatusOr<DefineReply> SimPs::Handle(DefineRequest request) {
  if (bugs_.KeepOldModel(request.model_epoch())) return last_define_;
  if (request.ps_incarnation() == bugs_.ShownIncarnation()) {
    request.set_ps_incarnation(options_.incarnation);
  }
  bugs_.See(request);
  absl::StatusOr<DefineReply> reply = shard_.Define(request);
  if (reply.ok()) last_define_ = *reply;
  return reply;
}

absl::StatusOr<LoadReply> SimPs::Handle(Frame<LoadPart> request) {
  if (bugs_.keeps_old_model()) return LoadReply();
  bugs_.Forge(request.header.mutable_fence());
  bugs_.Forge(&request);
  return shard_.Load(request);
}

absl::StatusOr<SealReply> SimPs::Handle(SealRequest request) {
  bugs_.Forge(request.mutable_fence());
  absl::StatusOr<SealReply> reply = shard_.Seal(request);
  if (reply.ok()) *reply->mutable_state() = bugs_.Shown(reply->state());
  return reply;
}

absl::StatusOr<Frame<PullReply>> SimPs::Handle(PullRequest request) {
  bugs_.Forge(request.mutable_fence());
  bugs_.Forge(request.mutable_token());
  return Copied(shard_.Pull(request));
}

absl::StatusOr<Frame<PushReply>> SimPs::Handle(Frame<PushPart> request) {
  bugs_.Forge(request.header.mutable_fence());
  bugs_.Forge(&request);
  absl::StatusOr<Frame<PushReply>> reply = Copied(shard_.Push(request));
  options_.oracle->AfterPush(this);
  return reply;
}

absl::StatusOr<BeginSnapshotReply> SimPs::Handle(BeginSnapshotRequest request) {
  bugs_.Forge(request.mutable_fence());
  absl::StatusOr<BeginSnapshotReply> reply = shard_.BeginSnapshot(request);
  if (!reply.ok()) return reply;
  options_.oracle->AfterCut(this, *reply);
  if (options_.bug == Bug::kMarksNotSaved) reply->clear_marks();
  return reply;
}

absl::StatusOr<Frame<SnapshotPart>> SimPs::Handle(ReadSnapshotRequest request) {
  bugs_.Forge(request.mutable_fence());
  if (options_.bug == Bug::kTornCut && request.slot().empty()) {
    return bugs_.ReadValuesOfNow(request);
  }
  return shard_.ReadSnapshot(request);
}

absl::StatusOr<EndSnapshotReply> SimPs::Handle(EndSnapshotRequest request) {
  bugs_.Forge(request.mutable_fence());
  return shard_.EndSnapshot(request);
}

// ---- The coordinator ----------------------------------------------------

absl::StatusOr<RegisterReply> SimPs::Handle(const RegisterRequest& request) {
  absl::StatusOr<RegisterReply> reply = coordinator_->Register(request, Now());
  if (reply.ok() && reply->takeover() != 0 &&
      options_.bug == Bug::kTakeoverUnconfirmed) {
    RegisterRequest confirmed = request;
    confirmed.set_takeover(reply->takeover());
    reply = coordinator_->Register(confirmed, Now());
  }
  if (reply.ok() && reply->takeover() == 0 && !request.asks_only()) {
    options_.oracle->Registered(options_.incarnation, request.sender());
    options_.network->OnRegistered(
        request.sender(), [network = options_.network, request] {
          if (network->ps(0) == nullptr) return;
          static_cast<void>(network->ps(0)->Handle(request));
        });
    if (request.chief()) {
      options_.oracle->ChiefRegistered(options_.incarnation, request.sender());
      options_.network->OnChiefRegistered();
    }
  }
  Advance();
  return reply;
}

absl::StatusOr<BeginEpochReply> SimPs::Handle(
    const BeginEpochRequest& request) {
  BeginEpochRequest forged = request;
  bugs_.ForgeLease(*coordinator_, forged.mutable_sender());
  absl::StatusOr<BeginEpochReply> reply =
      coordinator_->BeginEpoch(forged, Now());
  if (reply.ok()) {
    options_.oracle->LeaseUsed(options_.incarnation, request.sender());
  }
  Advance();
  return reply;
}

absl::StatusOr<CommitEpochReply> SimPs::Handle(
    const CommitEpochRequest& request) {
  CommitEpochRequest forged = request;
  bugs_.ForgeLease(*coordinator_, forged.mutable_sender());
  absl::StatusOr<CommitEpochReply> reply =
      coordinator_->CommitEpoch(forged, Now());
  if (reply.ok()) {
    options_.oracle->LeaseUsed(options_.incarnation, request.sender());
    options_.oracle->AfterCommit(request);
  }
  Advance();
  return reply;
}

void SimPs::Step(StepRequest request, ReplyCallback<StepReply> done) {
  bugs_.Forge(*coordinator_, &request);
  const uint64_t id = next_call_++;
  const absl::Status status = coordinator_->Step(request, id, Now());
  if (!status.ok()) return done(status);
  steps_[id] = std::move(done);
  step_senders_[id] = request.sender();
  options_.oracle->AfterStep(*coordinator_);
  Advance();
}

absl::StatusOr<FinishReply> SimPs::Handle(const FinishRequest& request) {
  absl::StatusOr<FinishReply> reply = coordinator_->Finish(request, Now());
  if (request.unsaved()) {
    unsaved_.try_emplace(request.sender().incarnation(), Now());
  }
  Advance();
  return reply;
}

absl::StatusOr<RequestSaveReply> SimPs::Handle(
    const RequestSaveRequest& request) {
  absl::StatusOr<RequestSaveReply> reply =
      coordinator_->RequestSave(request, Now());
  Advance();
  return reply;
}

absl::StatusOr<PauseRoundsReply> SimPs::Handle(
    const PauseRoundsRequest& request) {
  absl::StatusOr<PauseRoundsReply> reply =
      coordinator_->PauseRounds(request, Now());
  if (reply.ok()) {
    options_.oracle->TokenGiven(options_.incarnation, request.model_epoch(),
                                reply->token());
  }
  Advance();
  return reply;
}

void SimPs::Watch(const WatchRequest& request, ReplyCallback<JobState> done) {
  const uint64_t id = next_call_++;
  const absl::Status status = coordinator_->Watch(request, id, Now());
  if (!status.ok()) return done(status);
  watches_[id] = std::move(done);
  if (request.sender().task().job() == kPsJob) {
    heard_[request.sender().task().index()] = Now();
  }
  Advance();
}

void SimPs::Advance() {
  if (!alive_) return;
  coordinator_->Tick(Now());
  for (const WatchAnswer& answer : coordinator_->TakeAnswers(Now())) {
    const auto watch = watches_.extract(answer.watch_id);
    if (!watch.empty()) watch.mapped()(answer.state);
  }
  options_.oracle->SampleClocks(options_.incarnation, *coordinator_);
  for (const StepAnswer& answer : coordinator_->TakeStepAnswers(Now())) {
    const Sender asker = step_senders_[answer.step_id];
    step_senders_.erase(answer.step_id);
    if (answer.reply.granted()) {
      options_.oracle->TokenGiven(options_.incarnation,
                                  answer.reply.model_epoch(),
                                  answer.reply.token());
      options_.oracle->StepGranted(asker);
    }
    const auto step = steps_.extract(answer.step_id);
    if (!step.empty()) step.mapped()(answer.reply);
  }
  if (coordinator_->phase() == DONE && done_ == absl::InfiniteFuture()) {
    done_ = Now();
    options_.oracle->AtJobEnd(coordinator_->State());
  }
  if (coordinator_->EndIsKnown() && !ending_) {
    ending_ = true;
    process_.RunAt(Now() + kFarewell, [this] { End(); });
  }
  const absl::Time tick = coordinator_->NextDeadline();
  if (tick >= next_tick_ || tick == absl::InfiniteFuture()) return;
  next_tick_ = tick;
  process_.RunAt(tick, [this, tick] {
    if (next_tick_ == tick) next_tick_ = absl::InfiniteFuture();
    Advance();
  });
}

// As PsTask::Drain: whoever waits is told, and then it leaves.
void SimPs::End() {
  if (!alive_) return;
  for (auto& [id, done] : std::exchange(watches_, {})) {
    done(coordinator_->State());
  }
  ended_ = true;
  left_ = Now();
  options_.simulator->Note("ps ends", options_.task);
  Die();
}

bool SimPs::WaitedFor(int task) const {
  const auto heard = heard_.find(task);
  return heard == heard_.end() || gave_up_ ||
         left_ >= std::min(heard->second, done_) + kEndPatience;
}

bool SimPs::KeptModelOf(uint64_t incarnation) const {
  const auto unsaved = unsaved_.find(incarnation);
  return unsaved != unsaved_.end() && done_ >= unsaved->second + kEndPatience;
}

WatchRequest SimPs::MakeWatch(int64_t version, absl::Duration wait) const {
  WatchRequest request;
  *request.mutable_sender()->mutable_task() = MakeTaskId(kPsJob, options_.task);
  request.mutable_sender()->set_incarnation(options_.incarnation);
  request.set_state_version(version);
  request.set_max_wait_ms(
      static_cast<int32_t>(absl::ToInt64Milliseconds(wait)));
  return request;
}

// As JobWatcher.
void SimPs::WatchJob() {
  caller_.Call<JobState>(
      0, MakeWatch(watched_version_, kWatch), Now() + 2 * kWatch,
      [this](const absl::StatusOr<JobState>& state) {
        if (!alive_) return;
        if (state.ok() && state->phase() == DONE) {
          return ConfirmEnd(state->state_version(), 1);
        }
        watched_version_ = state.ok() ? state->state_version() : 0;
        if (state.ok()) return WatchJob();
        process_.RunAt(Now() + kWatchPause, [this] {
          if (alive_) WatchJob();
        });
      },
      kServeWatch);
}

void SimPs::ConfirmEnd(int64_t version, int attempt) {
  caller_.Call<JobState>(
      0, MakeWatch(version, absl::ZeroDuration()), Now() + kConfirmTimeout,
      [this, version, attempt](const absl::StatusOr<JobState>& state) {
        if (!alive_) return;
        if (state.ok() || attempt == kConfirmAttempts) return End();
        process_.RunAt(Now() + kWatchPause, [this, version, attempt] {
          if (alive_) ConfirmEnd(version, attempt + 1);
        });
      },
      kServeWatch);
}

// ---- After a signal -------------------------------------------------------

// Task 0 asks itself without a network.
template <typename Reply, typename Request, typename Serve>
void SimPs::CallFirst(const Request& request, absl::Time deadline,
                      ReplyCallback<Reply> done, Serve serve) {
  if (options_.task == 0) return serve(*this, request, std::move(done));
  caller_.Call<Reply>(0, request, deadline, std::move(done), serve);
}

void SimPs::Terminate() {
  if (!alive_ || ending_ || save_wait_.has_value()) return;
  options_.simulator->Note("ps is terminated", options_.task);
  save_wait_.emplace(Now() + kSavePatience);
  RequestSaveRequest request;
  *request.mutable_sender() = MakeWatch(0, absl::ZeroDuration()).sender();
  CallFirst<RequestSaveReply>(
      request, save_wait_->give_up(),
      [this](const absl::StatusOr<RequestSaveReply>& reply) {
        if (!alive_) return;
        if (!reply.ok()) {
          return OnVerdict(save_wait_->OnFailure(reply.status()));
        }
        save_version_ = reply->state().state_version();
        OnVerdict(save_wait_->OnReply(*reply, Now()));
      },
      kServeRequestSave);
}

void SimPs::WatchForSave() {
  CallFirst<JobState>(
      MakeWatch(save_version_,
                save_wait_->give_up() - Now() + absl::Milliseconds(1)),
      save_wait_->give_up() + kAnswerTime,
      [this](const absl::StatusOr<JobState>& state) {
        if (!alive_) return;
        if (!state.ok()) {
          return OnVerdict(save_wait_->OnFailure(state.status()));
        }
        save_version_ = state->state_version();
        OnVerdict(save_wait_->OnState(*state, Now()));
      },
      kServeWatch);
}

void SimPs::OnVerdict(SaveWait::Verdict verdict) {
  options_.simulator->Note("ps has asked for a save", options_.task,
                           static_cast<int64_t>(verdict));
  switch (verdict) {
    case SaveWait::Verdict::kWait:
      return process_.RunAt(Now(), [this] {
        if (alive_) WatchForSave();
      });
    case SaveWait::Verdict::kJobDone:
      if (options_.task != 0 || coordinator_->EndIsKnown()) return End();
      return process_.RunAt(save_wait_->give_up(), [this] {
        gave_up_ = alive_;
        End();
      });
    default:
      Drain(verdict == SaveWait::Verdict::kSaved);
  }
}

void SimPs::Drain(bool saved) {
  if (saved) options_.oracle->PsLeavesSaved(options_.task);
  options_.network->set_ps(options_.task, nullptr, nullptr);
  const absl::Status ending = absl::UnavailableError("this ps is ending");
  for (auto& [id, done] : std::exchange(watches_, {})) done(ending);
  for (auto& [id, done] : std::exchange(steps_, {})) done(ending);
  const auto leave = [this] {
    if (!alive_) return;
    Die();
    options_.on_exit(this);
  };
  if (options_.task == 0) return leave();
  RequestSaveRequest request;
  *request.mutable_sender() = MakeWatch(0, absl::ZeroDuration()).sender();
  request.set_leaving(true);
  caller_.Call<RequestSaveReply>(
      0, request, Now() + kLeavePatience,
      [leave](const absl::StatusOr<RequestSaveReply>&) { leave(); },
      kServeRequestSave);
}

}  // namespace muster
