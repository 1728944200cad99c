#include "tests/simulation/sim_ps.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"
#include "ps_server/caller/namespace_of.h"
#include "ps_server/coordinator/job_of_namespace.h"
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
// As ps_server --max_namespaces.
constexpr size_t kMostNamespaces = 64;

ShardOptions ShardOptionsOf(const SimPs::Options& options) {
  ShardOptions shard;
  shard.ps_index = options.task;
  shard.incarnation = options.incarnation;
  if (options.keeps_serving) shard.max_namespaces = kMostNamespaces;
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
  jobs_.emplace(options_.keeps_serving ? kMostNamespaces : 0, JobOptions(""));
  ServeCoordinator();
}

SimCoordination::Options SimPs::JobOptions(const std::string& space) {
  SimCoordination::Options job;
  job.process = &process_;
  job.network = options_.network;
  // Nobody comes to a default namespace that is no job's.
  const auto oracle = options_.oracles.find(space);
  job.oracle = oracle == options_.oracles.end() ? nullptr : oracle->second;
  job.bugs = &bugs_;
  job.bug = options_.bug;
  job.incarnation = options_.incarnation;
  CoordinatorOptions coordinator;
  coordinator.expected_tasks = options_.num_workers;
  coordinator.may_go_on = options_.keeps_serving;
  job.coordinator = OptionsOfJob(coordinator, space);
  job.on_finish = options_.on_finish;
  job.on_end = [this] { OnJobEnd(); };
  return job;
}

absl::StatusOr<SimCoordination*> SimPs::FindJob(absl::string_view what,
                                                const std::string& space,
                                                bool brings) {
  if (SimCoordination* const job = jobs_->Find(space)) return job;
  if (!brings) return NoJobHere(what, space);
  return jobs_->FindOrAdd(what, space, JobOptions(space));
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
  Coordinator::VisitCalls([this](const auto& row, auto) {
    using Request = typename std::decay_t<decltype(row)>::Request;
    calls_.Handle(row, [this, path = row.path](const Request& request,
                                               absl::Time, const auto& done) {
      const absl::StatusOr<SimCoordination*> job = this->FindJob(
          path, std::string(NamespaceOf(request)), kBringsJob<Request>);
      if (!job.ok()) return done(job.status());
      done((*job)->Handle(request));
    });
  });
  calls_.Handle(kStepCall,
                [this](const StepRequest& request, absl::Time, auto done) {
                  const absl::StatusOr<SimCoordination*> job =
                      FindJob("step", request.sender().namespace_(), false);
                  if (!job.ok()) return done(job.status());
                  (*job)->Step(request, std::move(done));
                });
  calls_.Handle(kWatchCall,
                [this](const WatchRequest& request, absl::Time, auto done) {
                  Watch(request, std::move(done));
                });
}

void SimPs::Start() {
  alive_ = true;
  options_.network->set_ps(options_.task, this, &process_);
  // Who serves many jobs watches too, but does not end with one.
  if (options_.task != 0 && !options_.keeps_serving) WatchJob();
}

void SimPs::Die() {
  if (!alive_) return;
  alive_ = false;
  process_.Continue();
  if (options_.network->ps(options_.task) == this) {
    options_.network->set_ps(options_.task, nullptr, nullptr);
  }
  caller_.Die();
  if (!jobs_.has_value()) return;
  jobs_->ForEach([](const std::string&, SimCoordination& job) { job.Die(); });
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
  if (bugs_.TakesForDuplicate(request.header)) {
    Frame<PushReply> duplicate;
    duplicate.header.set_duplicate(true);
    return duplicate;
  }
  absl::StatusOr<Frame<PushReply>> reply = Copied(shard_.Push(request));
  OracleOf(request.header.sender())->AfterPush(this);
  return reply;
}

absl::StatusOr<BeginSnapshotReply> SimPs::Handle(BeginSnapshotRequest request) {
  bugs_.Forge(request.mutable_fence());
  absl::StatusOr<BeginSnapshotReply> reply = shard_.BeginSnapshot(request);
  if (!reply.ok()) return reply;
  OracleOf(request.sender())->AfterCut(this, *reply);
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

// ---- The jobs -----------------------------------------------------------

const Coordinator* SimPs::FindCoordinator(const std::string& space) const {
  const SimCoordination* job = nullptr;
  if (!jobs_.has_value()) return nullptr;
  jobs_->ForEach([&](const std::string& name, const SimCoordination& one) {
    if (name == space) job = &one;
  });
  return job == nullptr ? nullptr : &job->coordinator();
}

ShardState SimPs::State(const std::string& space) const {
  ShardState state;
  shard_.ForEachModel([&](const std::string& name, const ShardModel& model) {
    if (name == space) state = model.State();
  });
  return state;
}

absl::StatusOr<RequestSaveReply> SimPs::Handle(
    const RequestSaveRequest& request) {
  ASSIGN_OR_RETURN(
      SimCoordination* const job,
      FindJob("request save", request.sender().namespace_(), false));
  return job->Handle(request);
}

void SimPs::Watch(const WatchRequest& request, ReplyCallback<JobState> done) {
  const absl::StatusOr<SimCoordination*> job =
      FindJob("watch", request.sender().namespace_(), false);
  if (!job.ok()) return done(job.status());
  (*job)->Watch(request, std::move(done));
}

void SimPs::OnJobEnd() {
  if (options_.keeps_serving || std::exchange(ending_, true)) return;
  process_.RunAt(Now() + kFarewell, [this] { End(); });
}

// As PsTask::Drain: whoever waits is told, and then it leaves.
void SimPs::End() {
  if (!alive_) return;
  if (jobs_.has_value()) {
    jobs_->ForEach(
        [](const std::string&, SimCoordination& job) { job.AnswerWatches(); });
  }
  ended_ = true;
  left_ = Now();
  options_.simulator->Note("ps ends", options_.task);
  Die();
}

bool SimPs::WaitedFor(int task) const {
  const SimCoordination& job = jobs_->default_value();
  const absl::Time heard = job.HeardOf(task);
  return heard == absl::InfiniteFuture() || gave_up_ ||
         left_ >= std::min(heard, job.done()) + kEndPatience;
}

bool SimPs::KeptModelOf(const std::string& space, uint64_t incarnation) const {
  bool has_kept = false;
  jobs_->ForEach([&](const std::string& name, const SimCoordination& job) {
    if (name == space) has_kept = job.KeptModelOf(incarnation);
  });
  return has_kept;
}

Sender SimPs::SelfIn(const std::string& space) const {
  Sender sender;
  sender.set_namespace_(space);
  *sender.mutable_task() = MakeTaskId(kPsJob, options_.task);
  sender.set_incarnation(options_.incarnation);
  return sender;
}

WatchRequest SimPs::MakeWatch(const std::string& space, int64_t version,
                              absl::Duration wait) const {
  WatchRequest request;
  *request.mutable_sender() = SelfIn(space);
  request.set_state_version(version);
  request.set_max_wait_ms(
      static_cast<int32_t>(absl::ToInt64Milliseconds(wait)));
  return request;
}

// As JobWatcher.
void SimPs::WatchJob() {
  caller_.Call<JobState>(
      0, MakeWatch("", watched_version_, kWatch), Now() + 2 * kWatch,
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
      0, MakeWatch("", version, absl::ZeroDuration()), Now() + kConfirmTimeout,
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

std::vector<std::string> SimPs::SpacesToSave() const {
  std::vector<std::string> spaces;
  shard_.ForEachModel([&](const std::string& space, const ShardModel& model) {
    if (model.phase() == READY) spaces.push_back(space);
  });
  if (spaces.empty()) spaces.emplace_back();
  return spaces;
}

void SimPs::Terminate() {
  if (!alive_ || ending_ || !saves_.empty()) return;
  options_.simulator->Note("ps is terminated", options_.task);
  for (const std::string& space : SpacesToSave()) {
    saves_.push_back(
        std::make_unique<Save>(Save{space, SaveWait(Now() + kSavePatience)}));
  }
  for (const auto& save : saves_) AskForSave(*save);
}

void SimPs::AskForSave(Save& save) {
  RequestSaveRequest request;
  *request.mutable_sender() = SelfIn(save.space);
  CallFirst<RequestSaveReply>(
      request, save.wait.give_up(),
      [this, &save](const absl::StatusOr<RequestSaveReply>& reply) {
        if (!alive_) return;
        if (!reply.ok()) {
          return OnVerdict(save, save.wait.OnFailure(reply.status()));
        }
        save.version = reply->state().state_version();
        OnVerdict(save, save.wait.OnReply(*reply, Now()));
      },
      kServeRequestSave);
}

void SimPs::WatchForSave(Save& save) {
  const absl::Time give_up = save.wait.give_up();
  CallFirst<JobState>(
      MakeWatch(save.space, save.version,
                give_up - Now() + absl::Milliseconds(1)),
      give_up + kAnswerTime,
      [this, &save](const absl::StatusOr<JobState>& state) {
        if (!alive_) return;
        if (!state.ok()) {
          return OnVerdict(save, save.wait.OnFailure(state.status()));
        }
        save.version = state->state_version();
        OnVerdict(save, save.wait.OnState(*state, Now()));
      },
      kServeWatch);
}

void SimPs::OnVerdict(Save& save, SaveWait::Verdict verdict) {
  options_.simulator->Note("ps has asked for a save", options_.task,
                           static_cast<int64_t>(verdict));
  save.verdict = verdict;
  if (verdict == SaveWait::Verdict::kWait) {
    return process_.RunAt(Now(), [this, &save] {
      if (alive_) WatchForSave(save);
    });
  }
  const bool is_any_open =
      std::any_of(saves_.begin(), saves_.end(), [](const auto& other) {
        return other->verdict == SaveWait::Verdict::kWait;
      });
  if (is_any_open) return;
  if (saves_.size() > 1) return ConfirmSaves();
  OnVerdicts();
}

// As SaveAsker::Confirm, for all at once.
void SimPs::ConfirmSaves() {
  unconfirmed_ = 1;
  for (const auto& save : saves_) {
    if (save->verdict != SaveWait::Verdict::kSaved) continue;
    ++unconfirmed_;
    CallFirst<JobState>(
        MakeWatch(save->space, save->version, absl::ZeroDuration()),
        Now() + kAnswerTime,
        [this, save = save.get()](const absl::StatusOr<JobState>& state) {
          save->verdict = state.ok() ? save->wait.Confirm(*state, Now())
                                     : save->wait.OnFailure(state.status());
          OnConfirmed();
        },
        kServeWatch);
  }
  OnConfirmed();
}

void SimPs::OnConfirmed() {
  if (alive_ && --unconfirmed_ == 0) OnVerdicts();
}

void SimPs::OnVerdicts() {
  const bool are_done =
      std::all_of(saves_.begin(), saves_.end(), [](const auto& save) {
        return save->verdict == SaveWait::Verdict::kJobDone;
      });
  are_done ? OnJobsDone() : Drain();
}

void SimPs::OnJobsDone() {
  if (options_.keeps_serving) return Drain();
  const bool is_known =
      options_.task != 0 || jobs_->default_value().coordinator().EndIsKnown();
  if (is_known) return End();
  process_.RunAt(saves_.front()->wait.give_up(), [this] {
    gave_up_ = alive_;
    End();
  });
}

void SimPs::Drain() {
  for (const auto& save : saves_) {
    if (save->verdict != SaveWait::Verdict::kSaved) continue;
    options_.oracles.at(save->space)->PsLeavesSaved(options_.task);
  }
  options_.network->set_ps(options_.task, nullptr, nullptr);
  const absl::Status ending = absl::UnavailableError("this ps is ending");
  if (options_.task == 0) {
    jobs_->ForEach(
        [&](const std::string&, SimCoordination& job) { job.Refuse(ending); });
  }
  Leave(0);
}

// Tells the jobs from this one on that this ps has left.
void SimPs::Leave(size_t next) {
  if (!alive_) return;
  if (options_.task == 0 || next == saves_.size()) {
    Die();
    return options_.on_exit(this);
  }
  RequestSaveRequest request;
  *request.mutable_sender() = SelfIn(saves_[next]->space);
  request.set_leaving(true);
  caller_.Call<RequestSaveReply>(
      0, request, Now() + kLeavePatience,
      [this, next](const absl::StatusOr<RequestSaveReply>&) {
        Leave(next + 1);
      },
      kServeRequestSave);
}

}  // namespace muster
