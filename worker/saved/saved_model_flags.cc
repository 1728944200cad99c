#include "worker/saved/saved_model_flags.h"

#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/end_process.h"
#include "common/process/exit_code.h"
#include "common/process/stop_signals.h"
#include "worker/saved/prediction_file.h"

ABSL_FLAG(bool, evaluate, false,
          "Train nothing: evaluate what is in --train_dir (its newest "
          "checkpoint) or --init_from on the test half of the data.");
ABSL_FLAG(bool, predict, false,
          "Train nothing: write to --output what the model in --train_dir or "
          "--init_from says of each row of the test half.");
ABSL_FLAG(std::vector<std::string>, ensemble, {},
          "With --evaluate or --predict: use several trained models as one, "
          "the mean of their probabilities: --ensemble=RUN1,RUN2, each a "
          "train_dir or a .safetensors file. --devices has them compute side "
          "by side.");
ABSL_FLAG(std::string, output, "",
          "--predict: the file to write, which ends in .csv, .jsonl or .npy. "
          "--evaluate: a file for the figures as JSON.");
ABSL_FLAG(
    std::string, predict_values, "auto",
    "class, probabilities or outputs; auto: probabilities, or the outputs "
    "of a model whose loss has none.");

namespace muster {
namespace {

absl::StatusOr<PredictionValues> PredictionValuesFlag() {
  const std::string text = absl::GetFlag(FLAGS_predict_values);
  if (text == "auto") return PredictionValues::kAuto;
  if (text == "class") return PredictionValues::kClass;
  if (text == "probabilities") return PredictionValues::kProbabilities;
  if (text == "outputs") return PredictionValues::kOutputs;
  return absl::InvalidArgumentError(
      absl::StrCat("--predict_values: wanted auto, class, probabilities or "
                   "outputs, found '",
                   text, "'"));
}

}  // namespace

bool UsesSavedModel() {
  return absl::GetFlag(FLAGS_evaluate) || absl::GetFlag(FLAGS_predict);
}

bool UsesEnsemble() { return !absl::GetFlag(FLAGS_ensemble).empty(); }

absl::Status CheckSavedModelFlagsUnused() {
  if (UsesEnsemble()) {
    return absl::InvalidArgumentError(
        "--ensemble is for --predict and --evaluate; scripts/muster ensemble "
        "trains one");
  }
  if (absl::GetFlag(FLAGS_output).empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--output is for --predict and --evaluate; a training writes to "
      "--train_dir");
}

absl::StatusOr<std::vector<EnsembleMember>> ReadEnsembleFlag(
    const std::string& training, absl::Span<const std::string> sets) {
  return ReadMembers(absl::GetFlag(FLAGS_ensemble), training, sets);
}

absl::Status ReadSavedModelFlags(SavedRunOptions* options) {
  if (absl::GetFlag(FLAGS_evaluate) && absl::GetFlag(FLAGS_predict)) {
    return absl::InvalidArgumentError(
        "--evaluate and --predict: wanted one of them");
  }
  options->output = absl::GetFlag(FLAGS_output);
  ASSIGN_OR_RETURN(options->values, PredictionValuesFlag());
  return absl::OkStatus();
}

absl::StatusOr<int> UseSavedModel(SavedRunOptions options) {
  options.print = [](absl::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  // At once, whatever is being opened, loaded or computed.
  const StopSignals signals(
      [&options](int signal) {
        PredictionFile::RemoveUnfinished(options.output);
        EndProcess(128 + signal);
      },
      options.model.reporter);
  RETURN_IF_ERROR(absl::GetFlag(FLAGS_predict) ? PredictSaved(options)
                                               : EvaluateSaved(options));
  return int{kExitDone};
}

}  // namespace muster
