#include "worker/training/any_workers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/training/schedule_length.h"

namespace muster {
namespace {

absl::Status Refuse(absl::string_view field, absl::string_view why,
                    absl::string_view advice) {
  return absl::InvalidArgumentError(
      absl::StrCat(field,
                   ": where workers come and go (the cluster takes any "
                   "worker) ",
                   why, "; ", advice, ", or list the workers in the cluster"));
}

}  // namespace

absl::Status CheckSuitsAnyWorkers(const ClusterSpec& cluster,
                                  const TrainingSpec& training) {
  if (!cluster.takes_any_worker()) return absl::OkStatus();
  if (training.input().global_batch_size() > 0) {
    return Refuse("input.global_batch_size",
                  "nobody knows among how many it is to be divided",
                  "set input.batch_size, the rows of one tower");
  }
  if (!training.replication().has_sync()) return absl::OkStatus();
  const OptimizerSpec& optimizer = training.optimizer();
  if (optimizer.learning_rate_scaling() != NONE) {
    return Refuse("optimizer.learning_rate_scaling",
                  "updates of sync have the rows of those that are there",
                  "write the rate that is meant, or train with async");
  }
  if (FallsOverTraining(optimizer.schedule()) && training.stop().epochs() > 0) {
    return Refuse("optimizer.schedule.decay_steps",
                  "nobody knows how many updates of sync stop.epochs will have",
                  "set it, or stop.steps in the place of stop.epochs");
  }
  return absl::OkStatus();
}

}  // namespace muster
