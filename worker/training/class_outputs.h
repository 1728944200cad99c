#ifndef WORKER_TRAINING_CLASS_OUTPUTS_H_
#define WORKER_TRAINING_CLASS_OUTPUTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/training.pb.h"
#include "worker/input/data_set/data_set.h"

namespace muster {

// The flag that gives the model of `training` so many outputs,
// "--set=model.logits.units=3", tried out; "" if no attribute of one layer
// does.
std::string OutputsFlag(const TrainingSpec& training, int64_t num_outputs);

// Whether a training begins, or reads what one has been trained on.
enum class RunKind { kNew, kKnown };

// Checks that the classes of `data_set` fit `num_outputs` outputs of the model.
// Errors: InvalidArgument, with the flag that mends it: more classes than
// outputs; in a new run fewer, if they have names: numbers may leave some out.
absl::Status CheckOutputs(const TrainingSpec& training, const DataSet& data_set,
                          int64_t num_outputs, RunKind run);

}  // namespace muster

#endif  // WORKER_TRAINING_CLASS_OUTPUTS_H_
