#ifndef WORKER_TASK_SAVED_MODEL_FLAGS_H_
#define WORKER_TASK_SAVED_MODEL_FLAGS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/task/saved_run.h"

namespace muster {

// The flags by which a worker uses a trained model: --evaluate, --predict,
// --output and --predict_values. For main.cc, as if they stood there.

// For CommandLineOptions::flags_files.
inline constexpr char kSavedModelFlagsFile[] =
    "worker/task/saved_model_flags.cc";

// Was --evaluate or --predict given?
bool UsesSavedModel();

// Errors: InvalidArgument for --output without them.
absl::Status CheckSavedModelFlagsUnused();

// Sets `output` and `values`. Errors: InvalidArgument for both of --evaluate
// and --predict, or another word than --predict_values has.
absl::Status ReadSavedModelFlags(SavedRunOptions* options);

// Evaluates or predicts, as the flags say, until that is done or a signal
// comes. Returns the process's exit code. Errors: EvaluateSaved's,
// PredictSaved's.
absl::StatusOr<int> UseSavedModel(SavedRunOptions options);

}  // namespace muster

#endif  // WORKER_TASK_SAVED_MODEL_FLAGS_H_
