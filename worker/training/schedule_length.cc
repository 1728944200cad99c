#include "worker/training/schedule_length.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/max_count.h"
#include "common/base/readable_number.h"
#include "common/rows/row_ranges.h"

namespace muster {
namespace {

// A double holds it exactly.
constexpr double kMostRows = kMaxCount;

}  // namespace

bool FallsOverTraining(const ScheduleSpec& schedule) {
  return schedule.decay_steps() == 0 &&
         (schedule.name() == "cosine" || schedule.name() == "polynomial");
}

absl::Status CheckEpochs(const StopSpec& stop, int64_t num_examples) {
  if (stop.epochs() == 0) return absl::OkStatus();
  const double examples = stop.epochs() * static_cast<double>(num_examples);
  if (examples >= 1 && examples <= kMostRows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "stop.epochs is ", stop.epochs(), ", of ", num_examples,
      " training examples: wanted 1 to ", kMaxCount,
      " examples in all; 0 epochs are no limit, if another stop is set"));
}

std::string DescribeStop(const StopSpec& stop, const EpochLength& epoch,
                         absl::string_view source) {
  std::vector<std::string> ends;
  const int64_t last = UpdatesUntilStop(stop, epoch);
  const bool by_steps = stop.steps() > 0 && last == stop.steps();
  const bool epochs_have_length = stop.epochs() > 0 && epoch.update_rows > 0;
  if (stop.steps() > 0 || epochs_have_length) {
    const std::string steps = absl::StrCat("stop.steps=", stop.steps());
    const std::string epochs =
        absl::StrCat("stop.epochs=", ReadableNumber(stop.epochs(), 6));
    const bool both = stop.steps() > 0 && epochs_have_length;
    ends.push_back(absl::StrCat(
        "at step ", last, " (", by_steps ? steps : epochs,
        both ? absl::StrCat("; ", by_steps ? epochs : steps, " is later") : "",
        ")"));
  }
  if (stop.epochs() > 0 && !epochs_have_length) {
    ends.push_back(absl::StrCat("after ", ReadableNumber(stop.epochs(), 6),
                                " epochs (stop.epochs)"));
  }
  if (stop.seconds() > 0) {
    ends.push_back(absl::StrCat("after ", ReadableNumber(stop.seconds(), 6),
                                " s of training (stop.seconds)"));
  }
  if (stop.target_accuracy() > 0) {
    ends.push_back(absl::StrCat("at a test accuracy of ",
                                stop.target_accuracy(),
                                " (stop.target_accuracy)"));
  }
  if (stop.has_plateau()) {
    ends.push_back(absl::StrCat(
        "when ", stop.plateau().metric(), " has not become better for ",
        stop.plateau().patience(), " evaluations (stop.plateau)"));
  }
  if (ends.empty()) return "the training ends when all workers are done";
  return absl::StrCat("the training ends ", absl::StrJoin(ends, " or "),
                      ends.size() > 1 ? ", whichever comes first" : "", ", as ",
                      source, " says");
}

int64_t UpdatesUntilStop(const StopSpec& stop, const EpochLength& epoch) {
  if (stop.epochs() == 0 || epoch.update_rows == 0) return stop.steps();
  const int64_t by_epochs =
      RowsOfEpochs(stop.epochs(), epoch.rows) / epoch.update_rows;
  return stop.steps() == 0 ? by_epochs : std::min(stop.steps(), by_epochs);
}

absl::Status FitScheduleToTraining(const StopSpec& stop,
                                   const EpochLength& epoch,
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
      std::max<int64_t>(UpdatesUntilStop(stop, epoch), 1));
  return absl::OkStatus();
}

}  // namespace muster
