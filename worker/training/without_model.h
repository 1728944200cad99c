// The settings of a training that hold whoever computes its gradients.
#ifndef WORKER_TRAINING_WITHOUT_MODEL_H_
#define WORKER_TRAINING_WITHOUT_MODEL_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/training.pb.h"

namespace muster {

// Fills their defaults in.
void FillDefaultsWithoutModel(TrainingSpec* spec);

// Checks them. The registries of update rules, placement strategies and codecs
// must be linked in. Errors: InvalidArgument and NotFound naming the field,
// what was wanted and what was found.
absl::Status ValidateWithoutModel(const TrainingSpec& spec);

// Makes a checked TrainingSpec for a program that computes gradients itself:
// without model, input, and all that belongs to a worker's own layers. It may
// have no stop condition: the program ends by itself. Errors: as above; also
// for a field that nobody would look at, with advice.
absl::StatusOr<TrainingSpec> CompleteProgramTraining(TrainingSpec spec);

}  // namespace muster

#endif  // WORKER_TRAINING_WITHOUT_MODEL_H_
