#include "worker/task/worker_task.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "worker/executor/compiled_model.h"
#include "worker/task/worker_session.h"

namespace muster {

absl::StatusOr<std::unique_ptr<WorkerTask>> WorkerTask::Create(
    WorkerOptions options, WorkerLinks links) {
  ASSIGN_OR_RETURN(WorkerJob job, WorkerJob::Create(std::move(options)));
  auto task = absl::WrapUnique(new WorkerTask());
  RETURN_IF_ERROR(task->CreateStages(std::move(job), std::move(links)));
  return task;
}

WorkerTask::~WorkerTask() { session_.reset(); }

absl::Status WorkerTask::CreateStages(WorkerJob job, WorkerLinks links) {
  ASSIGN_OR_RETURN(health_, StartHealth(job.options));
  ASSIGN_OR_RETURN(towers_, WorkerTowers::Create(job));
  ASSIGN_OR_RETURN(data_, WorkerData::Create(job, *towers_));
  ASSIGN_OR_RETURN(placed_,
                   PlacedTraining::Create(std::move(job), *towers_, *data_));
  std::unique_ptr<CompiledModel> test_model;
  if (data_->is_evaluated()) {
    ASSIGN_OR_RETURN(test_model, towers_->CompileForTest(placed_->training()));
  }
  ASSIGN_OR_RETURN(steps_, WorkerSteps::Create(placed_.get(), towers_.get(),
                                               data_.get(), std::move(links)));
  if (placed_->job().is_chief()) {
    // While stages are made there is no session, and a signal ends the process.
    ASSIGN_OR_RETURN(
        chief_, ChiefParts::Create(steps_.get(), std::move(test_model), [this] {
          return session_ == nullptr || session_->goes_on();
        }));
  }
  files_ = std::make_unique<RunFiles>(steps_.get(), chief_.get());
  ASSIGN_OR_RETURN(hooks_, WorkerHooks::Create({steps_.get(), chief_.get(),
                                                files_.get(), &session_}));
  MakeWorkerSession({steps_.get(), chief_.get(), files_.get(), hooks_->hooks(),
                     health_.get()},
                    &session_);
  return absl::OkStatus();
}

int WorkerTask::Run() {
  const int exit_code = session_->Run();
  StopLatch* const latch = placed_->options().latch;
  // In all-reduce the ps task of this process waits for the same end.
  if (session_->left_without_ps() && latch != nullptr) {
    latch->Stop({exit_code, "the job is over, and the others left"});
  }
  return exit_code;
}

void WorkerTask::RequestStop(int signal) {
  session_->RequestStop(signal);
  steps_->loop()->StopReading();
}

}  // namespace muster
