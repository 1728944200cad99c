#ifndef WORKER_TASK_RUN_FILES_H_
#define WORKER_TASK_RUN_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/coordination_service.pb.h"
#include "proto/training.pb.h"
#include "worker/hook/evaluation.h"
#include "worker/hook/hook.h"
#include "worker/session/training_session.h"
#include "worker/task/chief_parts.h"
#include "worker/task/result_file.h"
#include "worker/task/step_stage.h"

namespace muster {

// The files besides checkpoints and summaries that a worker's run writes into
// its train_dir, among them those that say how it has ended: result.json, and a
// mark in the folder of the last checkpoint.
class RunFiles {
 public:
  // What the chief's hooks know of the end.
  struct Outcome {
    // As Evaluation::results.
    std::vector<EvaluationResult> evaluated;
    std::string newest_checkpoint;
  };

  // Both outlive this; `chief` is null but in the chief. Looks for the end of
  // an earlier run.
  RunFiles(const StepStage* steps, ChiefParts* chief);

  // As SessionMachine::Options.finished.
  const std::string& finished_before() const { return finished_before_; }

  // The run without its outcome.
  TrainingResult DescribeRun() const;

  // Writes a file of any kind; the chief says if that takes long. Errors: those
  // of WriteFileAtomically.
  absl::Status Write(const std::string& path, const std::string& content) const;

  // Keeps how the run, which trained until `stop`, has ended, for those who
  // come later.
  void MarkFinished(const std::string& folder, const EndRecord& end,
                    const StopSpec& stop) const;

  // Writes the chief's result.json; nothing without a train_dir, nor if the
  // evaluation at the end has failed. Errors: those of CheckHeld and of Write,
  // of a file.
  absl::Status WriteResult(const EndRecord& end, const Outcome& outcome,
                           const TrainingSession& session) const;

 private:
  JobState StateAtEnd(const TrainingSession& session) const;
  bool StaysAsItIs(const std::string& path, const TrainingResult& result) const;

  const StepStage& steps_;
  ChiefParts* const chief_;
  std::string finished_before_;
};

}  // namespace muster

#endif  // WORKER_TASK_RUN_FILES_H_
