#include "worker/schedule_length.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// More than any training makes; a double holds it exactly.
constexpr double kMostUpdates = 1e15;
// Because 0.1 * 30 must be 3.
constexpr double kEpsilon = 1e-6;

bool FallsOverTraining(const ScheduleSpec& schedule) {
  return schedule.decay_steps() == 0 &&
         (schedule.name() == "cosine" || schedule.name() == "polynomial");
}

}  // namespace

int64_t UpdatesUntilStop(const StopSpec& stop, int64_t epoch_updates) {
  if (stop.epochs() == 0) return stop.steps();
  const auto by_epochs = static_cast<int64_t>(
      std::min(stop.epochs() * static_cast<double>(epoch_updates) + kEpsilon,
               kMostUpdates));
  return stop.steps() == 0 ? by_epochs : std::min(stop.steps(), by_epochs);
}

absl::Status FitScheduleToTraining(const StopSpec& stop, int64_t epoch_updates,
                                   OptimizerSpec* optimizer) {
  if (!FallsOverTraining(optimizer->schedule())) return absl::OkStatus();
  if (stop.steps() == 0 && stop.epochs() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule.decay_steps is not set, so that the schedule '",
        optimizer->schedule().name(),
        "' falls over the whole training; but neither stop.steps nor "
        "stop.epochs says how long that is: set one of the three"));
  }
  optimizer->mutable_schedule()->set_decay_steps(
      std::max<int64_t>(UpdatesUntilStop(stop, epoch_updates), 1));
  return absl::OkStatus();
}

}  // namespace muster
