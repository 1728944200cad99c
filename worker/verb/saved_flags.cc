#include "worker/verb/saved_flags.h"

#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "common/base/printing.h"
#include "common/base/status_macros.h"
#include "common/process/end_process.h"
#include "common/process/exit_code.h"
#include "common/process/stop_signals.h"
#include "common/rpc/server/task_flags.h"
#include "worker/client/call_status.h"
#include "worker/saved/prediction_file.h"
#include "worker/verb/device_flags.h"
#include "worker/verb/model_flags.h"
#include "worker/verb/worker_verb.h"

ABSL_FLAG(std::string, output, "",
          "The file to write. Of predictions: ends in .csv, .jsonl or .npy. Of "
          "an evaluation: the figures as JSON.");
ABSL_FLAG(std::string, half, "test",
          "The rows that are used: test, or validation (what "
          "input.validation_fraction of the training kept).");

ABSL_FLAG(std::string, checkpoint, "newest",
          "The checkpoint of --train_dir: newest, best (checkpoint.keep_best), "
          "or a global step.");

namespace muster {
namespace {

absl::StatusOr<Split> HalfFlag() {
  const std::string text = absl::GetFlag(FLAGS_half);
  for (const Split half : {Split::kTest, Split::kValidation}) {
    if (text == HalfName(half)) return half;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--half: wanted test or validation, found '", text, "'"));
}

absl::StatusOr<SavedRunOptions> MakeOptions(const CommandLine& command_line) {
  SavedRunOptions options;
  ASSIGN_OR_RETURN(RunTraining run, SavedTrainingFlags(command_line));
  options.model.training = std::move(run.training);
  options.model.log_device_placement =
      absl::GetFlag(FLAGS_log_device_placement);
  PrintingOptions printing;
  printing.columns = Environment("COLUMNS");
  ProgressOutput output = MakePrinting(printing);
  options.model.reporter = std::move(output.reporter);
  options.show_live = std::move(output.show_live);
  SayChanges(run, options.model.reporter);
  options.train_dir = absl::GetFlag(FLAGS_train_dir);
  absl::StatusOr<CheckpointChoice> checkpoint =
      ParseCheckpointChoice(absl::GetFlag(FLAGS_checkpoint));
  RETURN_IF_ERROR(Annotate(checkpoint.status(), "--checkpoint"));
  options.checkpoint = *checkpoint;
  options.output = absl::GetFlag(FLAGS_output);
  ASSIGN_OR_RETURN(options.half, HalfFlag());
  ASSIGN_OR_RETURN(options.model.device_choice, DeviceFlags());
  ASSIGN_OR_RETURN(
      const ComputeThreads threads,
      SetUpCores(ResolvedCluster(), options.model.training.input()));
  options.model.compute_threads = threads.count;
  ASSIGN_OR_RETURN(options.init,
                   InitFlags(command_line, /*other_source=*/false));
  return options;
}

int FailUse(const absl::Status& status) {
  const int exit_code = FailVerb(status);
  // The exit code of a training whose loss is not finite.
  if (absl::IsOutOfRange(status)) return kExitFailed;
  const bool is_checkpoint =
      absl::IsFailedPrecondition(status) && !IsOfFile(status);
  return is_checkpoint ? int{kExitBadCheckpoint} : exit_code;
}

}  // namespace

CommandLineOptions DescribeSavedVerb(const std::string& verb,
                                     const std::vector<std::string>& flags) {
  CommandLineOptions options = TaskCommandLine(absl::StrCat("worker ", verb));
  FlagGroup output = {"Result", {"output", "half"}};
  output.flags.insert(output.flags.end(), flags.begin(), flags.end());
  FlagGroup parameters = InitFlagGroup();
  parameters.flags.insert(parameters.flags.begin(), "checkpoint");
  options.groups = {TrainingFlagGroup(), output,         parameters,
                    DeviceFlagGroup(),   GpuFlagGroup(), LogFlagGroup()};
  DescribeModelFlags(&options);
  options.path_flags.push_back("output");
  return options;
}

int RunSavedVerb(
    const CommandLine& command_line,
    const std::function<absl::Status(SavedRunOptions*)>& add,
    const std::function<absl::Status(const SavedRunOptions&)>& use) {
  const absl::Status logging = SetUpTaskLogging(/*task_name=*/"");
  if (!logging.ok()) return FailVerb(logging);
  StopSignals::Block();
  auto options = MakeOptions(command_line);
  if (!options.ok()) return FailVerb(options.status());
  const absl::Status added = add(&*options);
  if (!added.ok()) return FailVerb(added);
  // At once, whatever is being opened, loaded or computed.
  const StopSignals signals(
      [&options](int signal) {
        PredictionFile::RemoveUnfinished(options->output);
        PredictionFile::RemoveUnfinished(options->labels);
        if (options->show_live != nullptr) options->show_live("");
        EndProcess(128 + signal);
      },
      options->model.reporter);
  const absl::Status used = use(*options);
  return used.ok() ? int{kExitDone} : FailUse(used);
}

}  // namespace muster
