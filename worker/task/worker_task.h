#ifndef WORKER_TASK_WORKER_TASK_H_
#define WORKER_TASK_WORKER_TASK_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/client/link/shard_link.h"
#include "worker/task/health_server.h"
#include "worker/task/placed_training.h"
#include "worker/task/training_run.h"
#include "worker/task/worker_data.h"
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
//   TrainingRun     what a chief has, files, hooks,     steps, test model
//                   the session                         (towers, data)
class WorkerTask {
 public:
  // Errors: what is wrong with the configuration or the data, by name;
  // Cancelled if the latch was stopped meanwhile.
  static absl::StatusOr<std::unique_ptr<WorkerTask>> Create(
      WorkerOptions options, WorkerLinks links);

  // Trains; returns the exit code.
  int Run();
  // Another start has this task, and no signal has come. After Run.
  bool was_replaced() const {
    return run_->session().was_replaced() && run_->session().goes_on();
  }

  // From any thread.
  void RequestStop(int signal);

 private:
  WorkerTask() = default;

  absl::Status CreateStages(WorkerJob job, WorkerLinks links);

  // In the order in which they outlive each other. Towers update by the rule of
  // the placed training.
  std::unique_ptr<PlacedTraining> placed_;
  std::unique_ptr<WorkerTowers> towers_;
  std::unique_ptr<WorkerData> data_;
  // Null if nobody asks.
  std::unique_ptr<HealthServer> health_;
  std::unique_ptr<WorkerSteps> steps_;
  std::unique_ptr<TrainingRun> run_;
};

}  // namespace muster

#endif  // WORKER_TASK_WORKER_TASK_H_
