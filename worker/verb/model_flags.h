// The flags that name a model and its parameters, of the verbs that have one.
#ifndef WORKER_VERB_MODEL_FLAGS_H_
#define WORKER_VERB_MODEL_FLAGS_H_

#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// The training of a trained model: without --training, what the folder of
// --train_dir or --init_from keeps (KeptTrainingPath). Errors: also
// InvalidArgument if it keeps none.
absl::StatusOr<TrainingSpec> SavedTrainingFlags(
    const CommandLine& command_line);

// Where parameters come from, and how they are matched. `other_source`: a flag
// beside --init_from has named one. Errors: InvalidArgument for flags that want
// a source.
absl::StatusOr<InitialWeights::Options> InitFlags(
    const CommandLine& command_line, bool other_source);

}  // namespace muster

#endif  // WORKER_VERB_MODEL_FLAGS_H_
