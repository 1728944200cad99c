// Using what was trained: worker --evaluate and worker --predict.
#ifndef WORKER_TASK_SAVED_RUN_H_
#define WORKER_TASK_SAVED_RUN_H_

#include <string>

#include "absl/status/status.h"
#include "common/process/stop_latch.h"
#include "worker/checkpoint/initial_weights.h"
#include "worker/task/saved_model.h"

namespace muster {

// The numbers that a prediction has beside the class.
enum class PredictionValues {
  // Probabilities, or the outputs where they stand for themselves.
  kAuto,
  // The class alone.
  kClass,
  kProbabilities,
  // The outputs before softmax or sigmoid.
  kOutputs,
};

struct SavedRunOptions {
  SavedModel::Options model;
  // One of them: see SavedModel::Load.
  std::string train_dir;
  InitialWeights::Options init;
  // Evaluation: a file for the figures as JSON; "" for none. Prediction: the
  // PredictionFile.
  std::string output;
  PredictionValues values = PredictionValues::kAuto;
  // Outlives the run; ends it between two batches.
  StopLatch* latch = nullptr;
};

// Evaluates the test half, and says the figures in one line: an evaluator's of
// the same checkpoint. Errors: what is wrong with the configuration, the data
// or the parameters, by name; Cancelled if the latch was stopped.
absl::Status EvaluateSaved(const SavedRunOptions& options);

// Predicts each row of the test half, in order, with memory for one batch; the
// data need no labels. With input.on_bad_record: SKIP a bad row has its place
// in the file, without values, and is counted. Errors: as EvaluateSaved; the
// output's.
absl::Status PredictSaved(const SavedRunOptions& options);

}  // namespace muster

#endif  // WORKER_TASK_SAVED_RUN_H_
