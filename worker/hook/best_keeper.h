#ifndef WORKER_HOOK_BEST_KEEPER_H_
#define WORKER_HOOK_BEST_KEEPER_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/reporter.h"
#include "proto/evaluation_history.pb.h"
#include "worker/hook/checkpoint_saver.h"
#include "worker/hook/evaluation.h"

namespace muster {

// checkpoint.keep_best: evaluates models that are fixed on the shards, and has
// the best one saved as it was evaluated, by the saver's thread. The best one
// of a run is one that is whole on the disk: until a better one is, and if its
// save fails, the former one is. The training thread calls all.
//
//   ASSIGN_OR_RETURN(const EvaluationResult result, keeper->EvaluateNow());
//   const auto outcome = watch.Add(*result.global_step, result);
//   keeper->Finish(outcome.is_best, watch.history());
//   ... report keeper->WithBest(watch.history()) ...
class BestKeeper {
 public:
  // Evaluates the values of a cut.
  using Evaluate =
      std::function<absl::StatusOr<EvaluationResult>(const PendingSave& cut)>;

  // `saver` outlives this, and this outlives what the saver writes.
  BestKeeper(CheckpointSaver* saver, Evaluate evaluate, Reporter reporter);

  // The best one of the run is that of `history`.
  void Enter(const EvaluationHistory& history);

  // Fixes and evaluates the model of now, when no save is being written. The
  // result has its global step. Errors: those of CheckpointSaver::Fix and of
  // the evaluation.
  absl::StatusOr<EvaluationResult> EvaluateNow();

  // Begins to save the model that was evaluated, if it is the best one, of
  // which `history` tells; else frees it. Does nothing if there is none.
  void Finish(bool is_best, const EvaluationHistory& history);

  // `history` with the best model that is saved by now.
  EvaluationHistory WithBest(EvaluationHistory history) const;

 private:
  void ReportNotKept(int64_t global_step) const;

  CheckpointSaver* const saver_;
  const Evaluate evaluate_;
  const Reporter reporter_;

  // Used by the training thread only.
  std::optional<PendingSave> cut_;

  mutable absl::Mutex mu_;
  // Without a metric: there is none.
  WatchedFigure saved_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_HOOK_BEST_KEEPER_H_
