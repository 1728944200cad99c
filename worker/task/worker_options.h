#ifndef WORKER_TASK_WORKER_OPTIONS_H_
#define WORKER_TASK_WORKER_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/base/work_progress.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "common/process/stop_latch.h"
#include "common/rpc/credentials.h"
#include "proto/parameter_service.pb.h"
#include "proto/training.pb.h"
#include "worker/checkpoint/initial_weights.h"
#include "worker/checkpoint/namespace_weights.h"
#include "worker/tower/computed_step.h"
#include "worker/tower/device_names.h"

namespace muster {

// The command line of a worker, read and checked.
struct WorkerOptions {
  TaskId self;
  // The cluster; empty: standalone, one ps in this process.
  ClusterSpec cluster;
  // The namespace of the ps tasks in which this job trains.
  std::string job_namespace;
  // The training, checked.
  TrainingSpec training;
  // The training's StopSource, to be told.
  std::string stop_source = "the training";
  // What --set was given, to be shown.
  std::vector<std::string> overrides;
  // The chief's folder; "": nothing is saved or restored.
  std::string train_dir;
  // Weights that a new training starts from.
  InitialWeights::Options init;
  // The same of another namespace.
  NamespaceWeights read_from;
  // The devices, one a tower.
  DeviceChoice device_choice;
  // Whether to say what computes each layer, and with how much memory.
  bool log_device_placement = false;
  // The threads of all towers together.
  int compute_threads = 1;
  absl::Duration max_wait = absl::Hours(2);
  // The own health service; "" for none.
  std::string listen_address;
  // The credentials of its links and of its own server.
  TaskCredentials credentials = InsecureCredentials();
  // The steps to write a timeline of, into train_dir.
  ProfiledSteps profiled;
  // Between two lines of a training without a terminal.
  absl::Duration progress_every = absl::Seconds(10);
  // A line for the operator, from any thread.
  Reporter reporter;
  // As ProgressOutput's.
  std::function<void(absl::string_view text)> show_live;
  // The process's start number: random and not 0.
  uint64_t incarnation = 1;
  // Ps task 0 has given this start its index (AcquireIndex).
  bool is_numbered = false;
  // Both outlive the task. The latch ends Create where it waits.
  const Clock* clock = nullptr;
  StopLatch* latch = nullptr;
  // The process's start.
  absl::Time start_time;
};

// The process of WorkerOptions or EvaluatorOptions, as ps tasks know it.
template <typename Options>
Sender SenderOf(const Options& options) {
  Sender sender;
  *sender.mutable_task() = options.self;
  sender.set_incarnation(options.incarnation);
  sender.set_namespace_(options.job_namespace);
  return sender;
}

// Where they show progress.
template <typename Options>
ProgressOutput ProgressOutputOf(const Options& options) {
  return {options.reporter, options.show_live, options.clock};
}

}  // namespace muster

#endif  // WORKER_TASK_WORKER_OPTIONS_H_
