#include <string>

#include "absl/strings/str_cat.h"
#include "common/process/stop_signals.h"
#include "worker/saved/saved_run.h"
#include "worker/verb/saved_flags.h"
#include "worker/verb/worker_verb.h"

namespace muster {
namespace {

CommandLineOptions Describe() {
  CommandLineOptions options = DescribeSavedVerb("evaluate", {});
  options.summary = absl::StrCat(
      "Evaluates a trained model on the test half of its data, or on the "
      "validation\nhalf (--half). Needs no cluster.\n\n"
      "  worker evaluate --train_dir=run1 [--checkpoint=best] "
      "[--output=figures.json]\n"
      "  worker evaluate --init_from=FILE.safetensors --training=FILE\n\n",
      kExitCodesHelp);
  return options;
}

int Run(const CommandLine& command_line) {
  return RunSavedVerb(
      command_line, [](SavedRunOptions*) { return absl::OkStatus(); },
      &EvaluateSaved);
}

}  // namespace

WorkerVerb EvaluateVerb() { return {"evaluate", &Describe, &Run}; }

}  // namespace muster
