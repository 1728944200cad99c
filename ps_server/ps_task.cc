#include "ps_server/ps_task.h"

#include <signal.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/logging.h"
#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/config/namespace_name.h"
#include "common/process/exit_code.h"
#include "common/rpc/channel_settings.h"
#include "common/rpc/deadline.h"
#include "common/rpc/server/listen_address.h"
#include "common/rpc/server/server_settings.h"
#include "common/rpc/server/start_server.h"
#include "grpcpp/server_builder.h"
#include "ps_server/caller/known_callers.h"
#include "ps_server/coordinator/awaited_workers.h"
#include "ps_server/service/call_service.h"
#include "ps_server/service/parameter_service.h"
#include "spdlog/spdlog.h"

namespace muster {
namespace {

// Calls in flight get so long at the end.
constexpr absl::Duration kDrainTime = absl::Seconds(3);
// With the drain and the farewell to ps task 0 less than 10 s.
constexpr absl::Duration kSavePatience = absl::Seconds(6);
constexpr absl::Duration kLeavePatience = absl::Milliseconds(500);
// After DONE, for peers that ask a last time.
constexpr absl::Duration kFarewell = absl::Seconds(1);

// A connection shows its certificate once: so soon everybody has shown a
// renewed one.
constexpr absl::Duration kCertifiedAge = absl::Minutes(5);

// Connections of shared memory, beyond two for each training task; all that
// there are for programs of one's own, which a cluster need not list. Each may
// take 8.5 MiB.
constexpr int kSpareConnections = 4;
// The same of TCP; one that does not read takes up to 9 MiB.
constexpr int kSpareTcpConnections = 64;

// Workers that come and go for which there is room in shared memory; others
// have the spare connections of TCP.
constexpr int kAnyWorkers = 4;

bool TakesAnyWorker(const ClusterDef& cluster) {
  return absl::c_any_of(cluster.job(),
                        [](const JobDef& job) { return job.any_task(); });
}

bool OffersSharedMemory(LinkChoice link) {
  return link == LinkChoice::kAuto || link == LinkChoice::kSharedMemory;
}

bool OffersTcp(LinkChoice link) {
  return link == LinkChoice::kAuto || link == LinkChoice::kTcp;
}

ShardOptions OptionsOfShard(const PsTaskOptions& options) {
  ShardOptions shard;
  shard.cluster = options.cluster;
  shard.ps_index = options.task_index;
  shard.incarnation = options.incarnation;
  shard.max_bytes = options.max_shard_bytes;
  if (options.keep_serving) {
    shard.max_namespaces = options.max_namespaces;
    shard.max_namespace_bytes = options.max_namespace_bytes;
  }
  shard.shares_memory = OffersSharedMemory(options.link);
  return shard;
}

Entrance::Options OptionsOfEntrance(const PsTaskOptions& options) {
  Entrance::Options entrance;
  entrance.proves_callers = options.credentials.proves_callers;
  entrance.cluster = options.cluster;
  entrance.self = TaskKey(kPsJob, options.task_index);
  entrance.wall_time = options.credentials.wall_time;
  entrance.reporter = Reporter(&LogLine);
  entrance.clock = options.clock;
  return entrance;
}

// The beginning of a line about a namespace's model or job; "" for the default
// one's.
std::string WhoseModel(const std::string& space) {
  return space.empty() ? "" : absl::StrCat(QuotedNamespace(space), ": ");
}

bool IsSignal(int exit_code) {
  return exit_code == 128 + SIGINT || exit_code == 128 + SIGTERM;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PsTask>> PsTask::Start(PsTaskOptions options,
                                                      StopLatch* latch) {
  const std::string own = AddressOfPs(options.cluster, options.task_index);
  ASSIGN_OR_RETURN(const std::string address,
                   ChooseListenAddress(own, options.bind,
                                       options.allow_insecure_network ||
                                           options.credentials.proves_callers));
  // A service must be registered before gRPC can offer its health.
  grpc::EnableDefaultHealthCheckService(true);
  auto task = std::unique_ptr<PsTask>(new PsTask(std::move(options), latch));
  RETURN_IF_ERROR(task->OfferSharedMemory());
  RETURN_IF_ERROR(task->OfferTcp());
  RETURN_IF_ERROR(task->Listen(address));
  RETURN_IF_ERROR(task->ServeHttp());
  return task;
}

PsTask::PsTask(PsTaskOptions options, StopLatch* latch)
    : options_(std::move(options)),
      latch_(latch),
      training_tasks_(TrainingTasks(options_.cluster)),
      num_workers_(TakesAnyWorker(options_.cluster)
                       ? kAnyWorkers
                       : static_cast<int>(training_tasks_.size())),
      entrance_(OptionsOfEntrance(options_)),
      shard_({OptionsOfShard(options_), options_.clock,
              options_.push_budget_bytes, options_.apply_threads,
              [this](const std::string& space, const ShardState& state,
                     const std::string& optimizer) {
                OnShardPhase(space, state, optimizer);
              },
              // On task 0 the coordinator says of workers what this could say.
              options_.task_index == 0 ? Reporter() : Reporter(&LogLine)}) {
  if (options_.task_index != 0) return;
  CoordinationServer::Options coordination;
  coordination.coordinator.worker_timeout = options_.worker_timeout;
  coordination.coordinator.max_wait = options_.max_wait;
  coordination.coordinator.ends_without_workers =
      options_.ends_without_workers && !options_.keep_serving;
  coordination.coordinator.expected_tasks =
      static_cast<int>(training_tasks_.size());
  coordination.coordinator.cluster = options_.cluster;
  coordination.coordinator.may_go_on = options_.keep_serving;
  if (options_.keep_serving) {
    coordination.max_namespaces = options_.max_namespaces;
  }
  coordination.clock = options_.clock;
  coordination.on_phase_change = [this](const std::string& space,
                                        const JobState& state) {
    OnJobPhase(space, state);
  };
  coordination.reporter = Reporter(&LogLine);
  coordination.awaited = [this](const std::string& space,
                                const JobState& state) {
    return DescribeAwaited(space, state);
  };
  coordination.on_end = [this](const JobState& state) { OnJobEnd(state); };
  coordination.last_request = [this] { return shard_.last_request(); };
  coordination_ = std::make_unique<CoordinationServer>(std::move(coordination));
}

PsTask::~PsTask() { Drain(); }

std::string PsTask::DescribeAwaited(const std::string& space,
                                    const JobState& state) {
  bool has_model = false;
  {
    absl::MutexLock lock(&mu_);
    // Nobody can come before it listens.
    if (health_ == nullptr) return "";
    has_model = ready_.count(space) > 0;
    // The job that nobody has brought is not waited for beside others.
    const bool serves_others = options_.keep_serving && !loaded_.empty();
    if (serves_others && space.empty() && state.workers().empty()) return "";
  }
  return DescribeAwaitedWorkers(
      space.empty() ? training_tasks_ : std::vector<TaskKey>(), state,
      has_model);
}

absl::Status PsTask::OfferSharedMemory() {
  if (!OffersSharedMemory(options_.link)) return absl::OkStatus();
  SharedMemoryListener::Options options;
  // A worker that was started anew may come before its former self is gone.
  options.max_connections = 2 * num_workers_ + kSpareConnections;
  options.shard = &shard_;
  options.clock = options_.clock;
  options.entrance = &entrance_;
  absl::StatusOr<std::unique_ptr<SharedMemoryListener>> listener =
      SharedMemoryListener::Start(options);
  if (listener.ok()) {
    shared_memory_ = *std::move(listener);
    return absl::OkStatus();
  }
  if (options_.link == LinkChoice::kSharedMemory) {
    return Annotate(listener.status(), "--link=shared_memory");
  }
  spdlog::warn("link: no shared memory: {}",
               std::string(listener.status().message()));
  return absl::OkStatus();
}

absl::Status PsTask::OfferTcp() {
  if (!OffersTcp(options_.link)) return absl::OkStatus();
  TcpListener::Options options;
  options.max_connections = 2 * num_workers_ + kSpareTcpConnections;
  options.shard = &shard_;
  options.clock = options_.clock;
  options.entrance = &entrance_;
  options.open = options_.credentials.accept_over;
  absl::StatusOr<std::unique_ptr<TcpListener>> listener =
      TcpListener::Start(std::move(options));
  if (listener.ok()) {
    tcp_ = *std::move(listener);
    return absl::OkStatus();
  }
  if (options_.link == LinkChoice::kTcp) {
    return Annotate(listener.status(), "--link=tcp");
  }
  spdlog::warn("link: no TCP: {}", std::string(listener.status().message()));
  return absl::OkStatus();
}

absl::Status PsTask::Listen(const std::string& address) {
  ASSIGN_OR_RETURN(ListeningServer listening,
                   StartServer(address,
                               {options_.port_wait, options_.clock, latch_,
                                Reporter(&LogLine), Reporter::kWarning},
                               [this](ServerListener* listener) {
                                 return TryServe(listener);
                               }));
  server_ = std::move(listening.server);
  listener_ = std::move(listening.listener);
  port_ = listener_->port();
  spdlog::info("listening on {} incarnation={:016x}", address,
               options_.incarnation);
  {
    absl::MutexLock lock(&mu_);
    health_ = server_->GetHealthCheckService();
  }
  PublishHealth();
  if (options_.task_index != 0) {
    JobWatcher::Options watch;
    watch.address = AddressOfPs(options_.cluster, 0);
    watch.credentials =
        CredentialsOfPs(options_.credentials, options_.cluster, 0);
    watch.sender = SelfIn("");
    watch.max_wait = options_.max_wait;
    watch.keep_serving = options_.keep_serving;
    watch.awaited = [this](const JobState& state) {
      return DescribeAwaited("", state);
    };
    watch.reporter = Reporter(&LogLine);
    watch.clock = options_.clock;
    watch.latch = latch_;
    watcher_ = std::make_unique<JobWatcher>(std::move(watch));
  }
  return absl::OkStatus();
}

std::unique_ptr<grpc::Server> PsTask::TryServe(ServerListener* listener) {
  // New services for each try: one can be registered only once.
  parameter_service_ = MakeParameterService(&shard_, &shard_.calls(),
                                            options_.clock, &entrance_);
  grpc::ServerBuilder builder;
  ServerSettings settings;
  settings.num_workers = static_cast<int>(training_tasks_.size());
  if (options_.credentials.proves_callers) {
    settings.max_connection_age = kCertifiedAge;
  }
  buffers_ = ApplyServerSettings(settings, &builder);
  listener->AddTo(&builder, options_.credentials.server,
                  options_.credentials.proves_callers ? Protocol::kTls
                                                      : Protocol::kPlaintext);
  builder.RegisterService(parameter_service_.get());
  unknown_calls_ = std::make_unique<UnknownCalls>(
      absl::StrCat("/job:ps/task:", options_.task_index,
                   " has no such call; ps task 0 is the one that knows the "
                   "job: is the order of the ps tasks the same everywhere?"));
  builder.RegisterCallbackGenericService(unknown_calls_.get());
  if (coordination_ != nullptr) {
    coordination_service_ = std::make_unique<CallService>(
        &coordination_->calls(), options_.clock, &entrance_);
    builder.RegisterService(coordination_service_.get());
  }
  RegisterLinks(listener, &builder);
  return builder.BuildAndStart();
}

void PsTask::RegisterLinks(ServerListener* listener,
                           grpc::ServerBuilder* builder) {
  if (shared_memory_ != nullptr) {
    shared_memory_service_ = MakeSharedMemoryService(
        [this](const Caller& caller) {
          return shared_memory_->OfferTo(caller);
        },
        options_.clock, &entrance_);
    builder->RegisterService(shared_memory_service_.get());
  }
  if (tcp_ != nullptr) {
    tcp_service_ = MakeTcpLinkService(
        [this](const Caller& caller) { return tcp_->OfferTo(caller); },
        options_.clock, &entrance_);
    builder->RegisterService(tcp_service_.get());
    listener->ServeTensors([this](FileDescriptor connection) {
      tcp_->Accept(std::move(connection));
    });
  }
}

void PsTask::OnShardPhase(const std::string& space, const ShardState& state,
                          const std::string& optimizer) {
  const bool ready = state.phase() == READY;
  const std::string whose = WhoseModel(space);
  if (ready) {
    spdlog::info(
        "{}ready: tensors={} bytes={} slot_bytes={} optimizer={} "
        "model_epoch={}",
        whose, state.tensors(), state.bytes(), state.slot_bytes(), optimizer,
        state.model_epoch());
  } else if (state.phase() == LOADING) {
    spdlog::info("{}loading: tensors={} model_epoch={}", whose, state.tensors(),
                 state.model_epoch());
  } else if (options_.keep_serving) {
    spdlog::info("{}empty: freed, or the machine has no memory for the model",
                 whose);
  } else {
    spdlog::warn("empty: the machine has no memory for the model");
  }
  {
    absl::MutexLock lock(&mu_);
    ready_.erase(space);
    loaded_.erase(space);
    if (ready) ready_.insert(space);
    if (state.phase() != EMPTY) loaded_.insert(space);
  }
  PublishHealth();
}

void PsTask::OnJobPhase(const std::string& space, const JobState& state) {
  spdlog::info("{}job is {} model_epoch={} global_step={} {}",
               WhoseModel(space), JobPhase_Name(state.phase()),
               state.model_epoch(), state.global_step(), state.stop_reason());
  if (space.empty() && state.phase() == DONE && state.unsaved()) {
    end_ = {kExitRetryable, DescribeUnsavedEnd()};
  }
}

void PsTask::OnJobEnd(const JobState& state) {
  if (!state.abandoned().empty()) end_ = {kExitRetryable, state.abandoned()};
  end_is_known_.Stop({0, "every ps task knows"});
  if (!options_.keep_serving) latch_->Stop(end_);
}

void PsTask::PublishHealth() {
  absl::MutexLock lock(&mu_);
  if (health_ == nullptr) return;
  const bool serving = !ready_.empty() && !draining_;
  health_->SetServingStatus(serving);
  health_->SetServingStatus("muster.ParameterService", serving);
  if (coordination_ != nullptr) {
    health_->SetServingStatus("muster.CoordinationService", serving);
  }
}

Sender PsTask::SelfIn(const std::string& space) const {
  Sender sender;
  sender.set_namespace_(space);
  sender.mutable_task()->set_job("ps");
  sender.mutable_task()->set_index(options_.task_index);
  sender.set_incarnation(options_.incarnation);
  return sender;
}

absl::Status PsTask::ServeHttp() {
  if (options_.http_address.empty()) return absl::OkStatus();
  PsHttp::Options http;
  http.address = options_.http_address;
  http.allow_insecure_network = options_.allow_insecure_network;
  http.credentials = options_.credentials;
  http.cluster = options_.cluster;
  http.task_index = options_.task_index;
  http.serves = [this] {
    absl::MutexLock lock(&mu_);
    return !draining_;
  };
  http.shard = &shard_;
  http.coordination = coordination_.get();
  http.entrance = &entrance_;
  http.clock = options_.clock;
  ASSIGN_OR_RETURN(http_, PsHttp::Start(http));
  return absl::OkStatus();
}

void PsTask::StopBeingReady() {
  {
    absl::MutexLock lock(&mu_);
    draining_ = true;
  }
  PublishHealth();
}

int PsTask::Run() {
  const StopReason reason = latch_->Wait();
  spdlog::info("ending: {}", reason.text);
  const bool job_is_done = IsSignal(reason.exit_code) && SaveBeforeEnd();
  if (!IsSignal(reason.exit_code)) StopLatch().WaitFor(kFarewell);
  Drain();
  return job_is_done ? 0 : reason.exit_code;
}

bool PsTask::SaveBeforeEnd() {
  StopBeingReady();
  const absl::Time give_up = options_.clock->Now() + kSavePatience;
  if (!AwaitSaves()) return false;
  // One that did not hear of the end would look for this task for long.
  if (coordination_ != nullptr) {
    end_is_known_.WaitFor(give_up - options_.clock->Now());
  }
  return true;
}

bool PsTask::AwaitSaves() {
  std::set<std::string> spaces;
  {
    absl::MutexLock lock(&mu_);
    spaces = ready_;
  }
  // It says why there is nothing to save.
  if (spaces.empty()) spaces.insert("");
  for (const std::string& space : spaces) {
    const std::shared_ptr<grpc::Channel> ps_0 =
        coordination_ != nullptr
            ? server_->InProcessChannel(grpc::ChannelArguments())
            : OpenChannel(
                  AddressOfPs(options_.cluster, 0),
                  CredentialsOfPs(options_.credentials, options_.cluster, 0));
    askers_.push_back(
        std::make_unique<SaveAsker>(ps_0, SelfIn(space), options_.clock));
    askers_.back()->Begin(kSavePatience);
  }
  const auto is_saving = [this] { return shard_.IsBeingSaved(); };
  for (const auto& asker : askers_) asker->Await(is_saving);
  for (const auto& asker : askers_) {
    if (askers_.size() > 1) asker->Confirm();
  }
  bool all_done = true;
  for (const auto& asker : askers_) {
    if (asker->Say() != SaveWait::Verdict::kJobDone) all_done = false;
  }
  return all_done;
}

void PsTask::Drain() {
  if (std::exchange(drained_, true)) return;
  StopBeingReady();
  watcher_.reset();
  // Answers every waiting Watch, so that no call outlives the drain.
  if (coordination_ != nullptr) coordination_->Close();
  if (server_ == nullptr) return;
  if (http_ != nullptr) http_->StopServing();
  listener_.reset();
  server_->Shutdown(ToGrpcDeadline(options_.clock->Now() + kDrainTime));
  {
    absl::MutexLock lock(&mu_);
    health_ = nullptr;
  }
  shard_.Close();
  http_.reset();
  // By now workers have every answer of the shard.
  shared_memory_.reset();
  tcp_.reset();
  server_->Wait();
  if (coordination_ == nullptr) {
    for (const auto& asker : askers_) asker->Leave(kLeavePatience);
  }
  PrintAccount();
}

void PsTask::PrintAccount() const {
  const ShardCounters counters = shard_.counters();
  const double mean = counters.staleness_count == 0
                          ? 0
                          : static_cast<double>(counters.staleness_sum) /
                                static_cast<double>(counters.staleness_count);
  spdlog::info(
      "ended: steps={} parts={} duplicates={} fenced={} refused={} "
      "late_parts={} unfinished_steps={} staleness_mean={:.2f} "
      "staleness_max={} no_room={} given_up_snapshots={}",
      counters.steps, counters.applied_parts, counters.duplicate_parts,
      counters.fenced_parts, counters.refused_parts, counters.late_parts,
      counters.unfinished_steps, mean, counters.staleness_max,
      shard_.refused_for_memory(), counters.given_up_snapshots);
}

}  // namespace muster
