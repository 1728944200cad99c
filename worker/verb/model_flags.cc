#include "worker/verb/model_flags.h"

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "worker/task/kept_training.h"
#include "worker/training/training_spec.h"

ABSL_FLAG(std::string, training, "",
          "File with the training spec, as text proto; worker/model/zoo has "
          "examples. A trained model keeps its own in --train_dir.");
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
namespace {

// The folder that keeps the training of what --init_from names: a train_dir is
// it, of a file or a checkpoint it is the one around it.
std::string RunFolderOf(const std::string& source) {
  PosixFileSystem file_system;
  const auto steps = ListCheckpoints(&file_system, source);
  if (steps.ok() && !steps->empty()) return source;
  const absl::string_view path = absl::StripSuffix(source, "/");
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : std::string(path.substr(0, slash));
}

}  // namespace

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

absl::StatusOr<TrainingSpec> SavedTrainingFlags(
    const CommandLine& command_line) {
  if (!absl::GetFlag(FLAGS_training).empty()) {
    return TrainingFlags(command_line);
  }
  std::string folder = absl::GetFlag(FLAGS_train_dir);
  const std::string source = absl::GetFlag(FLAGS_init_from);
  if (folder.empty() && !source.empty()) folder = RunFolderOf(source);
  if (folder.empty()) {
    return absl::InvalidArgumentError(
        "using a trained model: wanted --train_dir=DIR, whose newest "
        "checkpoint is taken, or --init_from=FILE.safetensors, found neither");
  }
  const std::string path = KeptTrainingPath(folder);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat("using a trained model: found neither '", path,
                     "', which a training writes, nor --training=FILE"));
  }
  RETURN_IF_ERROR(text.status());
  return ParseTrainingSpec(*text, path, Repeated(command_line, "set"));
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
