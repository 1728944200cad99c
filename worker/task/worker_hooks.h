#ifndef WORKER_TASK_WORKER_HOOKS_H_
#define WORKER_TASK_WORKER_HOOKS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/summary/event_file_writer.h"
#include "worker/hook/hook.h"
#include "worker/hook/job_profile.h"
#include "worker/hook/profiler.h"
#include "worker/hook/step_timeline.h"
#include "worker/hook/summary_hooks.h"
#include "worker/session/training_session.h"
#include "worker/task/chief_parts.h"
#include "worker/task/run_files.h"
#include "worker/task/session_hooks.h"
#include "worker/task/step_stage.h"

namespace muster {

// A worker's hooks, and the summaries that they write: the third stage of a
// TrainingRun.
class WorkerHooks {
 public:
  // The stages before, which outlive this.
  struct Worker {
    const StepStage* steps = nullptr;
    // Null but in the chief.
    ChiefParts* chief = nullptr;
    const RunFiles* files = nullptr;
    // The session, which is made last: null until then, and there while hooks
    // are called.
    const std::unique_ptr<TrainingSession>* session = nullptr;
    // As SessionHooks::Parts'.
    Hook* first = nullptr;
  };

  // Errors: InvalidArgument for a profile without a train_dir; those of
  // AddShownParts, WatchOptions and SessionHooks::Create.
  static absl::StatusOr<std::unique_ptr<WorkerHooks>> Create(
      const Worker& worker);
  ~WorkerHooks();

  SessionHooks* hooks() const { return hooks_.get(); }
  // Null if nothing is written for TensorBoard.
  EventFileWriter* summaries() const { return summaries_.get(); }

 private:
  explicit WorkerHooks(const Worker& worker) : worker_(worker) {}

  const PlacedTraining& placed() const { return worker_.steps->placed(); }
  absl::StatusOr<SessionHooks::Options> MakeOptions() const;
  absl::StatusOr<Profiler::Options> ProfileOptions() const;
  StepTimeline::Options TimelineOptions() const;
  JobProfile::Options JobProfileOptions() const;
  SessionHooks::Parts MakeParts() const;
  // The chief's: how it evaluates the model of now, and one that is fixed.
  void AddEvaluation(SessionHooks::Parts* parts) const;
  absl::StatusOr<SummaryParts> MakeSummaryParts();

  const Worker worker_;
  std::unique_ptr<EventFileWriter> summaries_;
  std::unique_ptr<SessionHooks> hooks_;
};

}  // namespace muster

#endif  // WORKER_TASK_WORKER_HOOKS_H_
