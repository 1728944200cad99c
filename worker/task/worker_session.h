#ifndef WORKER_TASK_WORKER_SESSION_H_
#define WORKER_TASK_WORKER_SESSION_H_

#include <memory>

#include "worker/session/training_session.h"
#include "worker/task/chief_parts.h"
#include "worker/task/health_server.h"
#include "worker/task/run_files.h"
#include "worker/task/session_hooks.h"
#include "worker/task/step_stage.h"

namespace muster {

// The stages that a worker's session is made from; all outlive it.
struct SessionStages {
  const StepStage* steps = nullptr;
  // Null but in the chief.
  ChiefParts* chief = nullptr;
  const RunFiles* files = nullptr;
  SessionHooks* hooks = nullptr;
  // Null if nobody asks.
  HealthServer* health = nullptr;
};

// Makes the session that runs a worker's steps, the last stage of a
// TrainingRun, in its place, where it stays.
void MakeWorkerSession(const SessionStages& stages,
                       std::unique_ptr<TrainingSession>* session);

}  // namespace muster

#endif  // WORKER_TASK_WORKER_SESSION_H_
