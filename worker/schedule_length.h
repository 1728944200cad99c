#ifndef WORKER_SCHEDULE_LENGTH_H_
#define WORKER_SCHEDULE_LENGTH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/training.pb.h"

namespace muster {

// Updates of the parameters until the training stops by steps or by epochs,
// whichever comes first; 0 if by neither. An epoch has `epoch_updates`.
int64_t UpdatesUntilStop(const StopSpec& stop, int64_t epoch_updates);

// A cosine or polynomial schedule without decay_steps falls over the whole
// training: sets its decay_steps to UpdatesUntilStop. Any other schedule stays
// as it is. Errors: InvalidArgument if the training stops neither by steps nor
// by epochs, and so has no length.
absl::Status FitScheduleToTraining(const StopSpec& stop, int64_t epoch_updates,
                                   OptimizerSpec* optimizer);

}  // namespace muster

#endif  // WORKER_SCHEDULE_LENGTH_H_
