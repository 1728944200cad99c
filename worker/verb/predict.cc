#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/stop_signals.h"
#include "worker/saved/saved_run.h"
#include "worker/verb/saved_flags.h"
#include "worker/verb/worker_verb.h"

ABSL_FLAG(
    std::string, values, "auto",
    "class, probabilities or outputs; auto: probabilities, or the outputs "
    "of a model whose loss has none.");
ABSL_FLAG(std::string, labels, "",
          "Also write the label of each row to this .npy file: int64 [rows] of "
          "classes, or float32 [rows, outputs]. The data must have labels.");

namespace muster {
namespace {

CommandLineOptions Describe() {
  CommandLineOptions options =
      DescribeSavedVerb("predict", {"values", "labels"});
  options.summary = absl::StrCat(
      "Writes what a trained model says of each row of the test half of the "
      "data (or\nthe validation half: --half), in order. Needs no cluster, and "
      "no labels.\n\n"
      "  worker predict --train_dir=run1 --output=predictions.csv\n"
      "  worker predict --train_dir=run1 --set=input.dir=NEW_DATA "
      "--output=new.npy\n\n",
      kExitCodesHelp);
  options.path_flags.push_back("labels");
  return options;
}

absl::StatusOr<PredictionValues> ValuesFlag() {
  const std::string text = absl::GetFlag(FLAGS_values);
  if (text == "auto") return PredictionValues::kAuto;
  if (text == "class") return PredictionValues::kClass;
  if (text == "probabilities") return PredictionValues::kProbabilities;
  if (text == "outputs") return PredictionValues::kOutputs;
  return absl::InvalidArgumentError(absl::StrCat(
      "--values: wanted auto, class, probabilities or outputs, found '", text,
      "'"));
}

absl::Status ReadOwnFlags(SavedRunOptions* options) {
  options->labels = absl::GetFlag(FLAGS_labels);
  ASSIGN_OR_RETURN(options->values, ValuesFlag());
  return absl::OkStatus();
}

int Run(const CommandLine& command_line) {
  return RunSavedVerb(command_line, &ReadOwnFlags, &PredictSaved);
}

}  // namespace

WorkerVerb PredictVerb() { return {"predict", &Describe, &Run}; }

}  // namespace muster
