#ifndef WORKER_TRAINING_SCHEDULE_LENGTH_H_
#define WORKER_TRAINING_SCHEDULE_LENGTH_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/training.pb.h"

namespace muster {

// What a training goes through in an epoch. Updates take their rows from the
// next one where it ends, so that an epoch need not be a number of them.
struct EpochLength {
  // Rows of the training set; 0: not known.
  int64_t rows = 0;
  // Rows of one update of the parameters.
  int64_t update_rows = 1;
};

// Errors: InvalidArgument if stop.epochs of `num_examples` are no count of
// examples from 1 to kMaxCount.
absl::Status CheckEpochs(const StopSpec& stop, int64_t num_examples);

// One line with what will end the training, and that `source` says so; without
// a stop condition it is its workers, when they are done (a program's): "the
// training ends at step 40 (stop.steps=40), as --set says".
std::string DescribeStop(const StopSpec& stop, const EpochLength& epoch,
                         absl::string_view source);

// Does it fall over the whole training, whose length is then to be known?
bool FallsOverTraining(const ScheduleSpec& schedule);

// Updates of the parameters until the training stops by steps or by epochs,
// whichever comes first; 0 if by neither, or if the rows of an update are not
// known. Exact for one worker, and for updates that all workers have a part in.
int64_t UpdatesUntilStop(const StopSpec& stop, const EpochLength& epoch);

// A cosine or polynomial schedule without decay_steps falls over the whole
// training: sets its decay_steps to UpdatesUntilStop. Any other schedule stays
// as it is. Errors: InvalidArgument if the training stops neither by steps nor
// by epochs, and so has no length.
absl::Status FitScheduleToTraining(const StopSpec& stop,
                                   const EpochLength& epoch,
                                   OptimizerSpec* optimizer);

}  // namespace muster

#endif  // WORKER_TRAINING_SCHEDULE_LENGTH_H_
