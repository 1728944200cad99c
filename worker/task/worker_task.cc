#include "worker/task/worker_task.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "worker/executor/compiled_model.h"

namespace muster {

absl::StatusOr<std::unique_ptr<WorkerTask>> WorkerTask::Create(
    WorkerOptions options, WorkerLinks links) {
  ASSIGN_OR_RETURN(WorkerJob job, WorkerJob::Create(std::move(options)));
  auto task = absl::WrapUnique(new WorkerTask());
  RETURN_IF_ERROR(task->CreateStages(std::move(job), std::move(links)));
  return task;
}

absl::Status WorkerTask::CreateStages(WorkerJob job, WorkerLinks links) {
  ASSIGN_OR_RETURN(health_, StartHealth(job.options));
  ASSIGN_OR_RETURN(towers_, WorkerTowers::Create(job));
  ASSIGN_OR_RETURN(data_, WorkerData::Create(job, *towers_));
  ASSIGN_OR_RETURN(
      placed_, PlacedTraining::Create(
                   std::move(job), {towers_->model().parameters(),
                                    towers_->shape(), data_->num_examples()}));
  std::unique_ptr<CompiledModel> test_model;
  if (data_->is_evaluated()) {
    ASSIGN_OR_RETURN(test_model, towers_->CompileForTest(placed_->training()));
  }
  ASSIGN_OR_RETURN(steps_, WorkerSteps::Create(placed_.get(), towers_.get(),
                                               data_.get(), std::move(links)));
  ASSIGN_OR_RETURN(run_,
                   TrainingRun::Create(
                       {steps_.get(), std::move(test_model), health_.get()}));
  return absl::OkStatus();
}

int WorkerTask::Run() {
  const int exit_code = run_->session().Run();
  StopLatch* const latch = placed_->options().latch;
  // In all-reduce the ps task of this process waits for the same end.
  if (run_->session().left_without_ps() && latch != nullptr) {
    latch->Stop({exit_code, "the job is over, and the others left"});
  }
  return exit_code;
}

void WorkerTask::RequestStop(int signal) {
  run_->session().RequestStop(signal);
  steps_->runner()->StopReading();
}

}  // namespace muster
