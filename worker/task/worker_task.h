#ifndef WORKER_TASK_WORKER_TASK_H_
#define WORKER_TASK_WORKER_TASK_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/client/link/shard_link.h"
#include "worker/session/training_session.h"
#include "worker/task/chief_parts.h"
#include "worker/task/health_server.h"
#include "worker/task/placed_training.h"
#include "worker/task/run_files.h"
#include "worker/task/worker_data.h"
#include "worker/task/worker_hooks.h"
#include "worker/task/worker_job.h"
#include "worker/task/worker_options.h"
#include "worker/task/worker_steps.h"
#include "worker/task/worker_towers.h"

namespace muster {

// A worker or chief process, put together in stages, each made from those
// before it. Run once.
//
//   stage           owns                                made from
//   WorkerJob       options, the job's tasks            options
//   HealthServer    the own port                        job
//   WorkerTowers    devices, compiled models            job
//   WorkerData      both halves, schema, bad records    job, towers
//   PlacedTraining  the job with the fitted training,   job (moved), towers,
//                   update rule, placed model           data
//   WorkerSteps     links, client, exchange, loop       placed, towers, data,
//                                                       links
//   ChiefParts      train_dir, loader, saver,           steps, test model
//                   evaluator                           (towers, data)
//   RunFiles        result.json and the like            steps, chief
//   WorkerHooks     hooks, summaries                    steps, chief, files
//   session         the run                             all of them
class WorkerTask {
 public:
  // Errors: what is wrong with the configuration or the data, by name;
  // Cancelled if the latch was stopped meanwhile.
  static absl::StatusOr<std::unique_ptr<WorkerTask>> Create(
      WorkerOptions options, WorkerLinks links);
  ~WorkerTask();

  // Trains; returns the exit code.
  int Run();

  // From any thread.
  void RequestStop(int signal);

 private:
  WorkerTask() = default;

  absl::Status CreateStages(WorkerJob job, WorkerLinks links);

  // Made last and gone first; the others look whether it is there.
  std::unique_ptr<TrainingSession> session_;

  // In the order in which they outlive each other. Towers update by the rule of
  // the placed training.
  std::unique_ptr<PlacedTraining> placed_;
  std::unique_ptr<WorkerTowers> towers_;
  std::unique_ptr<WorkerData> data_;
  // Null if nobody asks.
  std::unique_ptr<HealthServer> health_;
  std::unique_ptr<WorkerSteps> steps_;
  // Null but in the chief.
  std::unique_ptr<ChiefParts> chief_;
  std::unique_ptr<RunFiles> files_;
  std::unique_ptr<WorkerHooks> hooks_;
};

}  // namespace muster

#endif  // WORKER_TASK_WORKER_TASK_H_
