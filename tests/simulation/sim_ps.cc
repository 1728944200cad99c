#include "tests/simulation/sim_ps.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"
#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"
#include "ps_server/caller/namespace_of.h"
#include "ps_server/coordinator/job_of_namespace.h"

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

auto ServeRequestSave(absl::Time deadline) {
  return [deadline](SimPs& ps, const RequestSaveRequest& request,
                    const ReplyCallback<RequestSaveReply>& done) {
    ps.RequestSave(request, deadline, done);
  };
}

auto ServeWatch(absl::Time deadline) {
  return [deadline](SimPs& ps, const WatchRequest& request,
                    const ReplyCallback<JobState>& done) {
    ps.Watch(request, deadline, done);
  };
}

absl::Status Ending() { return absl::UnavailableError("this ps is ending"); }

}  // namespace

SimPs::SimPs(const Options& options)
    : options_(options),
      process_(options.simulator),
      caller_(&process_, options.network, options.task),
      shard_(ShardOptions()) {
  shard_.Serve(&calls_);
  if (options_.task != 0) return;
  jobs_.emplace(options_.keeps_serving ? kMostNamespaces : 0, JobOptions(""));
  job_turns_ = std::make_unique<SimTurns>(TurnOptions(),
                                          [this] { return AdvanceJobs(); });
  ServeCoordinator();
}

SimTurns::Options SimPs::TurnOptions() {
  SimTurns::Options turns;
  turns.process = &process_;
  turns.seed = options_.seed * 37 + options_.incarnation;
  turns.longest_pause = options_.latency;
  turns.bug = options_.bug;
  turns.fail = [this](absl::string_view what) {
    options_.oracles.begin()->second->Fail(
        absl::StrCat("ps task ", options_.task, ": ", what));
  };
  return turns;
}

SimShard::Options SimPs::ShardOptions() {
  SimShard::Options shard;
  shard.turns = TurnOptions();
  shard.shard.ps_index = options_.task;
  shard.shard.incarnation = options_.incarnation;
  if (options_.keeps_serving) shard.shard.max_namespaces = kMostNamespaces;
  shard.oracles = options_.oracles;
  shard.bug = options_.bug;
  shard.ps = this;
  return shard;
}

SimCoordination::Options SimPs::JobOptions(const std::string& space) {
  SimCoordination::Options job;
  job.process = &process_;
  job.network = options_.network;
  // Nobody comes to a default namespace that is no job's.
  const auto oracle = options_.oracles.find(space);
  job.oracle = oracle == options_.oracles.end() ? nullptr : oracle->second;
  job.bugs = &shard_.bugs();
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

absl::StatusOr<SimCoordination*> SimPs::FindJob(const JobOf& of) {
  if (SimCoordination* const job = jobs_->Find(of.space)) return job;
  if (!of.is_brought) return NoJobHere(of.what, of.space);
  return jobs_->FindOrAdd(of.what, of.space, JobOptions(of.space));
}

template <typename Reply>
void SimPs::AskJob(const JobOf& of, absl::Time deadline,
                   const ReplyCallback<Reply>& done,
                   const std::function<void(SimCoordination&)>& answer) {
  job_turns_->Ask(
      deadline,
      [this, of, done, answer] {
        const absl::StatusOr<SimCoordination*> job = FindJob(of);
        if (!job.ok()) return done(job.status());
        answer(**job);
        // As after a batch of one. A process that died before it would take
        // along an end that some have heard of.
        (*job)->Advance();
      },
      [done](const absl::Status& why) { done(why); });
}

void SimPs::ServeCoordinator() {
  Coordinator::VisitCalls([this](const auto& row, auto) {
    using Row = std::decay_t<decltype(row)>;
    using Request = typename Row::Request;
    using Reply = typename Row::Reply;
    calls_.Handle(row, [this, path = row.path](
                           const Request& request, absl::Time deadline,
                           const ReplyCallback<Reply>& done) {
      const std::string space(NamespaceOf(request));
      this->AskJob<Reply>(
          {path, space, kBringsJob<Request>}, deadline, done,
          [request, done](SimCoordination& job) { done(job.Handle(request)); });
    });
  });
  calls_.Handle(kStepCall, [this](const StepRequest& request,
                                  absl::Time deadline, const auto& done) {
    AskJob<StepReply>(
        {"step", request.sender().namespace_()}, deadline, done,
        [request, done](SimCoordination& job) { job.Step(request, done); });
  });
  calls_.Handle(kWatchCall,
                [this](const WatchRequest& request, absl::Time deadline,
                       const auto& done) { Watch(request, deadline, done); });
}

absl::Duration SimPs::AdvanceJobs() {
  absl::Time due = absl::InfiniteFuture();
  jobs_->ForEach([&due](const std::string&, SimCoordination& job) {
    due = std::min(due, job.Advance());
  });
  return due - Now();
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
  shard_.turns().Die();
  if (!jobs_.has_value()) return;
  job_turns_->Die();
  jobs_->ForEach([](const std::string&, SimCoordination& job) { job.Die(); });
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

void SimPs::RequestSave(const RequestSaveRequest& request, absl::Time deadline,
                        const ReplyCallback<RequestSaveReply>& done) {
  AskJob<RequestSaveReply>(
      {"request save", request.sender().namespace_()}, deadline, done,
      [request, done](SimCoordination& job) { done(job.Handle(request)); });
}

void SimPs::Watch(const WatchRequest& request, absl::Time deadline,
                  const ReplyCallback<JobState>& done) {
  AskJob<JobState>(
      {"watch", request.sender().namespace_()}, deadline, done,
      [request, done](SimCoordination& job) { job.Watch(request, done); });
}

void SimPs::OnJobEnd() {
  if (options_.keeps_serving || std::exchange(ending_, true)) return;
  process_.RunAt(Now() + kFarewell, [this] { End(); });
}

void SimPs::CloseTurns(std::function<void(SimCoordination&)> cut,
                       std::function<void()> then) {
  closing_ = true;
  options_.network->set_ps(options_.task, nullptr, nullptr);
  closer_ = process_.StartThread(
      [this, cut = std::move(cut), then = std::move(then)] {
        const auto cut_all = [this, cut] {
          jobs_->ForEach(
              [&](const std::string&, SimCoordination& job) { cut(job); });
        };
        if (job_turns_ != nullptr) {
          job_turns_->Ask(absl::InfiniteFuture(), cut_all,
                          [](const absl::Status&) {});
          job_turns_->Close();
          // Came after the cut.
          jobs_->ForEach([](const std::string&, SimCoordination& job) {
            job.Refuse(Ending());
          });
        }
        shard_.turns().Close();
        if (alive_) then();
      });
}

// Whoever waits is told, and then it leaves.
void SimPs::End() {
  if (!alive_ || closing_) return;
  left_ = Now();
  CloseTurns([](SimCoordination& job) { job.AnswerWatches(); },
             [this] {
               ended_ = true;
               options_.simulator->Note("ps ends", options_.task);
               Die();
             });
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
  const absl::Time deadline = Now() + 2 * kWatch;
  caller_.Call<JobState>(
      0, MakeWatch("", watched_version_, kWatch), deadline,
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
      ServeWatch(deadline));
}

void SimPs::ConfirmEnd(int64_t version, int attempt) {
  const absl::Time deadline = Now() + kConfirmTimeout;
  caller_.Call<JobState>(
      0, MakeWatch("", version, absl::ZeroDuration()), deadline,
      [this, version, attempt](const absl::StatusOr<JobState>& state) {
        if (!alive_) return;
        if (state.ok() || attempt == kConfirmAttempts) return End();
        process_.RunAt(Now() + kWatchPause, [this, version, attempt] {
          if (alive_) ConfirmEnd(version, attempt + 1);
        });
      },
      ServeWatch(deadline));
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
  std::vector<std::string> spaces = shard_.ReadySpaces();
  if (spaces.empty()) spaces.emplace_back();
  return spaces;
}

void SimPs::Terminate() {
  if (!alive_ || ending_ || closing_ || !saves_.empty()) return;
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
      ServeRequestSave(save.wait.give_up()));
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
      ServeWatch(give_up + kAnswerTime));
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
  const absl::Time deadline = Now() + kAnswerTime;
  unconfirmed_ = 1;
  for (const auto& save : saves_) {
    if (save->verdict != SaveWait::Verdict::kSaved) continue;
    ++unconfirmed_;
    CallFirst<JobState>(
        MakeWatch(save->space, save->version, absl::ZeroDuration()), deadline,
        [this, save = save.get()](const absl::StatusOr<JobState>& state) {
          save->verdict = state.ok() ? save->wait.Confirm(*state, Now())
                                     : save->wait.OnFailure(state.status());
          OnConfirmed();
        },
        ServeWatch(deadline));
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
  if (closing_) return;
  for (const auto& save : saves_) {
    if (save->verdict != SaveWait::Verdict::kSaved) continue;
    options_.oracles.at(save->space)->PsLeavesSaved(options_.task);
  }
  CloseTurns([](SimCoordination& job) { job.Refuse(Ending()); },
             [this] { Leave(0); });
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
  const absl::Time deadline = Now() + kLeavePatience;
  caller_.Call<RequestSaveReply>(
      0, request, deadline,
      [this, next](const absl::StatusOr<RequestSaveReply>&) {
        Leave(next + 1);
      },
      ServeRequestSave(deadline));
}

}  // namespace muster
