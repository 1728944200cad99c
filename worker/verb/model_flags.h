// The flags that name a model and its parameters, of the verbs that have one.
#ifndef WORKER_VERB_MODEL_FLAGS_H_
#define WORKER_VERB_MODEL_FLAGS_H_

#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/reporter.h"
#include "common/config/command_line.h"
#include "proto/training.pb.h"
#include "worker/checkpoint/initial_weights.h"

ABSL_DECLARE_FLAG(std::string, training);
ABSL_DECLARE_FLAG(std::string, train_dir);

namespace muster {

// The groups of --help.
FlagGroup TrainingFlagGroup();
FlagGroup InitFlagGroup();

// Adds what all verbs with these flags say of them.
void DescribeModelFlags(CommandLineOptions* options);

// The values of a flag that may be given several times.
std::vector<std::string> Repeated(const CommandLine& command_line,
                                  const char* flag);

// --training with every --set. Errors: InvalidArgument if --training is
// missing; LoadTrainingSpec's.
absl::StatusOr<TrainingSpec> TrainingFlags(const CommandLine& command_line);

// The training of a run that begins, goes on or is used.
struct RunTraining {
  TrainingSpec training;
  // The file that it is from.
  std::string source;
  // A line for each way in which a step is not what it was in the run that is
  // there.
  std::vector<std::string> changes;
};

// For a task that trains or evaluates beside it: TrainingFlags, or without
// --training what --train_dir keeps (KeptTrainingPath), with every --set.
// Errors: also ReadKeptTraining's; InvalidArgument if it keeps none.
absl::StatusOr<RunTraining> RunTrainingFlags(const CommandLine& command_line);

// The same for the use of a trained model: without --training, what the folder
// of --train_dir or --init_from keeps.
absl::StatusOr<RunTraining> SavedTrainingFlags(const CommandLine& command_line);

// Says the changes, a line each.
void SayChanges(const RunTraining& run, const Reporter& reporter);

// Where parameters come from, and how they are matched. `other_source`: a flag
// beside --init_from has named one. Errors: InvalidArgument for flags that want
// a source.
absl::StatusOr<InitialWeights::Options> InitFlags(
    const CommandLine& command_line, bool other_source);

}  // namespace muster

#endif  // WORKER_VERB_MODEL_FLAGS_H_
