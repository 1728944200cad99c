#include "worker/verb/model_flags.h"

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "worker/task/kept_training.h"
#include "worker/task/run_data.h"
#include "worker/training/training_changes.h"
#include "worker/training/training_spec.h"

ABSL_FLAG(std::string, training, "",
          "File with the training spec, as text proto; worker/model/zoo has "
          "examples. Without it a run that is in --train_dir goes on, or is "
          "used, with the training that it keeps there.");
ABSL_FLAG(std::vector<std::string>, set, {},
          "Overrides a field: --set=optimizer.adam.learning_rate=3e-4, and a "
          "list as a whole: --set=model.input_shape=1,28,28, --set='placement."
          "pin={pattern: \"conv.*\" ps_task: 1}, {...}'. A stop.* replaces "
          "all stops of the file. May be given several times.");
ABSL_FLAG(std::string, train_dir, "",
          "Folder for checkpoints and result.json; only the chief uses it. A "
          "training that is there goes on.");
ABSL_FLAG(std::string, init_from, "",
          "Values that a new training starts from, or a model has: a "
          "safetensors file, a checkpoint's folder, or the train_dir of a "
          "training, whose newest checkpoint is taken; only the chief uses it. "
          "A training that is in --train_dir goes on instead.");
ABSL_FLAG(std::string, init_from_map, "",
          "PATTERN=REPLACEMENT renames tensors of --init_from or --read_from "
          "whose whole name the regular expression matches: "
          "'model\\.(.*)\\.weight=\\1/weights'; 'head/.*=' leaves them "
          "out, so that parameters of their names start from the seed. May be "
          "given several times; the first that fits decides.");
ABSL_FLAG(bool, init_from_partial, false,
          "Parameters that --init_from or --read_from lacks start from the "
          "seed, and tensors that the model lacks are passed over; each is "
          "listed.");

namespace muster {
FlagGroup TrainingFlagGroup() {
  return {"Training", {"training", "set", "train_dir"}};
}

FlagGroup InitFlagGroup() {
  return {"Parameters", {"init_from", "init_from_map", "init_from_partial"}};
}

void DescribeModelFlags(CommandLineOptions* options) {
  for (const char* flag :
       {"training", "train_dir", "init_from", "gpu_library_path"}) {
    options->path_flags.push_back(flag);
  }
  options->repeated_flags = {"set", "init_from_map"};
}

std::vector<std::string> Repeated(const CommandLine& command_line,
                                  const char* flag) {
  const auto values = command_line.repeated.find(flag);
  return values == command_line.repeated.end() ? std::vector<std::string>()
                                               : values->second;
}

absl::StatusOr<TrainingSpec> TrainingFlags(const CommandLine& command_line) {
  const std::string path = absl::GetFlag(FLAGS_training);
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "--training is missing: give it a training spec, for example "
        "worker/model/zoo/mnist_cnn.textproto");
  }
  return LoadTrainingSpec(path, Repeated(command_line, "set"));
}

namespace {

bool HasCheckpoint(const std::string& folder) {
  PosixFileSystem file_system;
  const auto steps = ListCheckpoints(&file_system, folder);
  return steps.ok() && !steps->empty();
}

// Errors: NotFound if there is neither --training nor a training in `folder`.
absl::StatusOr<RunTraining> TrainingOfRun(const CommandLine& command_line,
                                          const std::string& folder) {
  RunTraining run;
  run.source = absl::GetFlag(FLAGS_training);
  if (run.source.empty() && folder.empty()) {
    return absl::NotFoundError("no --train_dir");
  }
  const absl::StatusOr<FoundTraining> kept =
      folder.empty() ? absl::NotFoundError("") : ReadKeptTraining(folder);
  if (!run.source.empty()) {
    ASSIGN_OR_RETURN(run.training, TrainingFlags(command_line));
  } else {
    RETURN_IF_ERROR(kept.status());
    run.source = kept->path;
    ASSIGN_OR_RETURN(run.training,
                     ParseTrainingSpec(kept->text, kept->path,
                                       Repeated(command_line, "set")));
  }
  if (kept.ok() && HasCheckpoint(folder)) {
    run.changes = DescribeTrainingChanges(kept->training, run.training);
  }
  return run;
}

}  // namespace

absl::StatusOr<RunTraining> RunTrainingFlags(const CommandLine& command_line) {
  const std::string folder = absl::GetFlag(FLAGS_train_dir);
  absl::StatusOr<RunTraining> run = TrainingOfRun(command_line, folder);
  if (!absl::IsNotFound(run.status())) return run;
  return absl::InvalidArgumentError(absl::StrCat(
      "--training is missing: give it a training spec, for example "
      "worker/model/zoo/mnist_cnn.textproto",
      folder.empty() ? ", or the --train_dir of a run that is to go on"
                     : absl::StrCat("; --train_dir=", folder, " keeps none (",
                                    run.status().message(), ")")));
}

absl::StatusOr<RunTraining> SavedTrainingFlags(
    const CommandLine& command_line) {
  const std::string folder =
      RunFolder(absl::GetFlag(FLAGS_train_dir), absl::GetFlag(FLAGS_init_from));
  if (folder.empty() && absl::GetFlag(FLAGS_training).empty()) {
    return absl::InvalidArgumentError(
        "using a trained model: wanted --train_dir=DIR, whose newest "
        "checkpoint is taken, or --init_from=FILE.safetensors, found neither");
  }
  absl::StatusOr<RunTraining> run = TrainingOfRun(command_line, folder);
  if (!absl::IsNotFound(run.status())) return run;
  return absl::InvalidArgumentError(absl::StrCat(
      "using a trained model: found neither '", KeptTrainingPath(folder),
      "', which a training writes, nor --training=FILE"));
}

void SayChanges(const RunTraining& run, const Reporter& reporter) {
  for (const std::string& change : run.changes) {
    reporter.Info(absl::StrCat("not as in the run so far: ", change));
  }
}

absl::StatusOr<InitialWeights::Options> InitFlags(
    const CommandLine& command_line, bool other_source) {
  InitialWeights::Options init;
  init.path = absl::GetFlag(FLAGS_init_from);
  init.name_map = Repeated(command_line, "init_from_map");
  init.partial = absl::GetFlag(FLAGS_init_from_partial);
  if (init.path.empty() && !other_source &&
      (init.partial || !init.name_map.empty())) {
    return absl::InvalidArgumentError(
        "--init_from_map and --init_from_partial want --init_from or "
        "--read_from");
  }
  init.path = WithoutLinks(init.path);
  return init;
}

}  // namespace muster
