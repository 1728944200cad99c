#ifndef WORKER_CTL_TRAINING_FLAG_H_
#define WORKER_CTL_TRAINING_FLAG_H_

#include "absl/status/statusor.h"
#include "proto/training.pb.h"
#include "worker/ctl/verb.h"

namespace muster {

// The training that a verb's --training names, changed by its --set flags.
// Errors: InvalidArgument without --training; LoadTrainingSpec's.
absl::StatusOr<TrainingSpec> LoadTrainingOf(const VerbCall& call);

}  // namespace muster

#endif  // WORKER_CTL_TRAINING_FLAG_H_
