#include "worker/task/training_run.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "worker/task/worker_session.h"

namespace muster {

absl::StatusOr<std::unique_ptr<TrainingRun>> TrainingRun::Create(Task task) {
  auto made = absl::WrapUnique(new TrainingRun());
  TrainingRun* const run = made.get();
  if (task.steps->placed().job().is_chief()) {
    // While stages are made there is no session, and a signal ends the process.
    ASSIGN_OR_RETURN(
        run->chief_,
        ChiefParts::Create(task.steps, std::move(task.test_model), [run] {
          return run->session_ == nullptr || run->session_->goes_on();
        }));
  }
  run->files_ = std::make_unique<RunFiles>(task.steps, run->chief_.get());
  ASSIGN_OR_RETURN(
      run->hooks_,
      WorkerHooks::Create({task.steps, run->chief_.get(), run->files_.get(),
                           &run->session_, task.first_hook}));
  MakeWorkerSession({task.steps, run->chief_.get(), run->files_.get(),
                     run->hooks_->hooks(), task.health},
                    &run->session_);
  return made;
}

TrainingRun::~TrainingRun() { session_.reset(); }

}  // namespace muster
