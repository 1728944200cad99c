#include "worker/worker_process.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/logging.h"
#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "common/process/end_process.h"
#include "common/process/exit_code.h"
#include "common/process/memory_limit.h"
#include "common/process/stop_latch.h"
#include "common/process/stop_signals.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/incarnation.h"
#include "ps_server/ps_task.h"
#include "ps_server/service/coordination_server.h"
#include "ps_server/service/shard_server.h"
#include "spdlog/spdlog.h"
#include "worker/client/link/shard_link.h"
#include "worker/task/signal_target.h"
#include "worker/task/worker_task.h"

namespace muster {
namespace {

// --standalone: the one ps is in this process, and applies gradients with
// `threads`. `clock` outlives the links.
WorkerLinks MakeStandaloneLinks(const Clock* clock, int threads,
                                absl::Duration worker_timeout) {
  ShardServer::Options shard;
  // The compute threads have nothing to do while an update is made.
  shard.apply_threads = threads;
  shard.shard.incarnation = NewIncarnation();
  shard.shard.max_bytes = MaxShardBytes();
  shard.clock = clock;
  CoordinationServer::Options coordination;
  coordination.coordinator.worker_timeout = worker_timeout;
  coordination.clock = clock;
  WorkerLinks links;
  links.shards.push_back(std::make_unique<ShardServer>(shard));
  links.coordination = std::make_unique<CoordinationServer>(coordination);
  return links;
}

// For lines of such a training: nobody has started a /job:ps/task:0, which is
// "this process" there.
Reporter NamingThisProcess(Reporter reporter) {
  return Reporter([reporter = std::move(reporter)](Reporter::Level level,
                                                   absl::string_view line) {
    reporter.Report(
        level, absl::StrReplaceAll(line, {{"/job:ps/task:0", "this process"}}));
  });
}

// Trains; returns the worker's exit code. `after` gets the signals then.
absl::StatusOr<int> Train(WorkerOptions options, WorkerLinks links,
                          SignalTarget* target,
                          std::function<void(int signal)> after) {
  const bool is_numbered = options.is_numbered;
  ASSIGN_OR_RETURN(const auto task,
                   WorkerTask::Create(std::move(options), std::move(links)));
  target->HandTo([&task](int signal) {
    spdlog::info(
        "signal {}: finishing the step; a second SIGINT or SIGTERM ends at "
        "once",
        signal);
    task->RequestStop(signal);
  });
  const int exit_code = task->Run();
  target->HandTo(std::move(after));
  if (is_numbered && task->was_replaced()) {
    return FencedError("another worker has the number of this one",
                       ErrorReason::kReplaced);
  }
  return exit_code;
}

// The exit code is decided.
void IgnoreSignal(int signal) { static_cast<void>(signal); }

PsTaskOptions OptionsOfPs(const WorkerOptions& worker, const PsOptions& ps) {
  PsTaskOptions options;
  options.cluster = worker.cluster.TrainingDef();
  options.task_index = *worker.cluster.ShardOf(worker.self);
  // It was found to be allowed.
  options.bind = worker.listen_address;
  options.allow_insecure_network = true;
  options.credentials = worker.credentials;
  options.link = ps.link;
  options.worker_timeout = ps.worker_timeout;
  options.max_wait = worker.max_wait;
  options.ends_without_workers = false;
  options.incarnation = NewIncarnation();
  options.max_shard_bytes = MaxShardBytes();
  // The compute threads have nothing to do while an update is made.
  options.apply_threads = worker.compute_threads;
  options.clock = worker.clock;
  return options;
}

// The end of the process whose worker has ended with this code.
int EndAfterWorker(int worker_code, PsTask* ps) {
  if (worker_code != kExitDone) {
    // Its part of the parameters goes with it.
    ps->SaveBeforeEnd();
    ps->Drain();
    return worker_code;
  }
  const int ps_code = ps->Run();
  if (ps_code != kExitDone) {
    spdlog::error("the worker was done; its ps task ended with exit code {}",
                  ps_code);
  }
  return ps_code;
}

absl::StatusOr<int> TrainAndServe(WorkerOptions options, WorkerLinks links,
                                  const PsOptions& ps, SignalTarget* target) {
  const absl::StatusOr<std::unique_ptr<PsTask>> own =
      PsTask::Start(OptionsOfPs(options, ps), options.latch);
  RETURN_IF_ERROR(own.status());
  target->HandTo([&own](int signal) {
    // Others may train already, with its part of the parameters.
    (*own)->SaveBeforeEnd();
    (*own)->Drain();
    EndProcess(128 + signal);
  });
  const absl::Cleanup forget = [target] { target->HandTo(&IgnoreSignal); };
  // The ps task's server says on that address how both are.
  options.listen_address.clear();
  const auto stop_ps = [latch = options.latch](int signal) {
    latch->Stop({128 + signal, absl::StrCat("signal ", signal)});
  };
  ASSIGN_OR_RETURN(
      const int exit_code,
      Train(std::move(options), std::move(links), target, stop_ps));
  return EndAfterWorker(exit_code, own->get());
}

}  // namespace

absl::StatusOr<int> RunWorkerProcess(WorkerOptions options,
                                     const PsOptions& ps) {
  StopLatch latch;
  options.latch = &latch;
  SignalTarget target([](int exit_code) {
    spdlog::info("stopped before the training has begun");
    EndProcess(exit_code);
  });
  const StopSignals signals([&target](int signal) { target.OnSignal(signal); },
                            options.reporter);
  const ClusterSpec& cluster = options.cluster;
  if (cluster.empty()) {
    options.reporter = NamingThisProcess(std::move(options.reporter));
    WorkerLinks links = MakeStandaloneLinks(
        options.clock, options.compute_threads, ps.worker_timeout);
    return Train(std::move(options), std::move(links), &target, &IgnoreSignal);
  }
  WorkerLinks links = MakeClusterLinks(cluster, options.credentials, ps.link,
                                       Reporter(&LogLine), options.clock);
  if (!cluster.is_all_reduce()) {
    return Train(std::move(options), std::move(links), &target, &IgnoreSignal);
  }
  return TrainAndServe(std::move(options), std::move(links), ps, &target);
}

}  // namespace muster
