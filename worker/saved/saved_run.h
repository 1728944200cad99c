// Using what was trained: worker evaluate and worker predict.
#ifndef WORKER_SAVED_SAVED_RUN_H_
#define WORKER_SAVED_SAVED_RUN_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/checkpoint/checkpoint_choice.h"
#include "worker/checkpoint/initial_weights.h"
#include "worker/input/data_set/data_set.h"
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
  // As ProgressOutput's.
  std::function<void(absl::string_view text)> show_live;
  const Clock* clock = SystemClock();
  // The half whose rows are used: kTest or kValidation.
  Split half = Split::kTest;
  // One of them: see SavedModel::Load.
  std::string train_dir;
  CheckpointChoice checkpoint;
  InitialWeights::Options init;
  // Evaluation: a file for the figures as JSON; "" for none. Prediction: the
  // PredictionFile.
  std::string output;
  PredictionValues values = PredictionValues::kAuto;
  // Prediction: a .npy file for the rows' labels; "" for none, and then the
  // data need no labels.
  std::string labels;
};

// Evaluates the half, and says the figures in one line: an evaluator's of the
// same checkpoint. Errors: what is wrong with the configuration, the data
// or the parameters, by name; OutOfRange, after all is written, if no row has
// finite outputs (but with non_finite.allow).
absl::Status EvaluateSaved(const SavedRunOptions& options);

// Predicts each row of the half, in order, with memory for one batch. With
// input.on_bad_record: SKIP a bad row has its place in the file, without
// values, and is counted, and so is one with outputs that are NaN or infinite.
// Errors: as EvaluateSaved, and then there is no file; the output's.
absl::Status PredictSaved(const SavedRunOptions& options);

}  // namespace muster

#endif  // WORKER_SAVED_SAVED_RUN_H_
