#ifndef WORKER_SAVED_SAVED_MODEL_FLAGS_H_
#define WORKER_SAVED_SAVED_MODEL_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/saved/ensemble_member.h"
#include "worker/saved/saved_run.h"

namespace muster {

// The flags by which a worker uses a trained model: --evaluate, --predict,
// --ensemble, --output and --predict_values. For main.cc, as if they stood
// there.

// For CommandLineOptions::flags_files.
inline constexpr char kSavedModelFlagsFile[] =
    "worker/saved/saved_model_flags.cc";

// Was --evaluate or --predict given?
bool UsesSavedModel();

// Errors: InvalidArgument for --ensemble or --output without them.
absl::Status CheckSavedModelFlagsUnused();

// Was --ensemble given?
bool UsesEnsemble();

// ReadMembers of the runs that it names.
absl::StatusOr<std::vector<EnsembleMember>> ReadEnsembleFlag(
    const std::string& training, absl::Span<const std::string> sets);

// Sets `output` and `values`. Errors: InvalidArgument for both of --evaluate
// and --predict, or another word than --predict_values has.
absl::Status ReadSavedModelFlags(SavedRunOptions* options);

// Evaluates or predicts, as the flags say, until that is done or a signal
// comes. Returns the process's exit code. Errors: EvaluateSaved's,
// PredictSaved's.
absl::StatusOr<int> UseSavedModel(SavedRunOptions options);

}  // namespace muster

#endif  // WORKER_SAVED_SAVED_MODEL_FLAGS_H_
