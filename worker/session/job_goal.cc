#include "worker/session/job_goal.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

bool HasCondition(const StopSpec& stop) {
  return stop.steps() > 0 || stop.epochs() > 0 || stop.seconds() > 0 ||
         stop.target_accuracy() > 0;
}

}  // namespace

bool IsReached(const JobGoal& goal, const JobState& job) {
  const StopSpec& stop = goal.stop;
  if (!HasCondition(stop)) return true;
  if (stop.steps() > 0 && job.global_step() >= stop.steps()) return true;
  const double most = stop.epochs() * static_cast<double>(goal.epoch_examples);
  if (stop.epochs() > 0 &&
      static_cast<double>(job.examples() + goal.update_examples) > most) {
    return true;
  }
  const std::string& reason = job.stop_reason();
  if (reason == "seconds") return stop.seconds() > 0;
  if (reason == "target_accuracy") return stop.target_accuracy() > 0;
  return reason != "steps" && reason != "epochs" && reason != "non_finite" &&
         !absl::StartsWith(reason, "interrupted") &&
         !absl::StartsWith(reason, "failed: ");
}

std::string Describe(const JobGoal& goal) {
  const StopSpec& stop = goal.stop;
  std::vector<std::string> conditions;
  const auto add = [&conditions](const char* name, double value) {
    if (value > 0)
      conditions.push_back(absl::StrCat("stop.", name, " ", value));
  };
  if (stop.steps() > 0) {
    conditions.push_back(absl::StrCat("stop.steps ", stop.steps()));
  }
  add("epochs", stop.epochs());
  add("seconds", stop.seconds());
  add("target_accuracy", stop.target_accuracy());
  return absl::StrJoin(conditions, " or ");
}

}  // namespace muster
