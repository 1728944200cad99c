#include "worker/session/job_goal.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

bool HasCondition(const StopSpec& stop) {
  return stop.steps() > 0 || stop.epochs() > 0 || stop.seconds() > 0 ||
         stop.target_accuracy() > 0 || stop.has_plateau();
}

// The job has ended for this condition; does the goal want no more of it?
bool WantsNoMore(double goal, double job) { return goal > 0 && goal <= job; }

bool WantsNoMore(const PlateauSpec& goal, const PlateauSpec& job) {
  return goal.metric() == job.metric() && goal.mode() == job.mode() &&
         goal.min_change() >= job.min_change() &&
         WantsNoMore(goal.patience(), job.patience());
}

}  // namespace

bool IsPlateauReached(const StopSpec& stop, const EvaluationHistory& history) {
  return stop.has_plateau() &&
         history.stop().metric() == stop.plateau().metric() &&
         history.stop().bad_evaluations() >= stop.plateau().patience();
}

bool IsStopCondition(absl::string_view reason) {
  return reason == "steps" || reason == "epochs" || reason == "seconds" ||
         reason == "target_accuracy" || reason == "plateau";
}

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
  if (reason == "epochs") {
    return WantsNoMore(stop.epochs(), job.stop().epochs());
  }
  if (reason == "seconds") {
    return WantsNoMore(stop.seconds(), job.stop().seconds());
  }
  if (reason == "target_accuracy") {
    return WantsNoMore(stop.target_accuracy(), job.stop().target_accuracy());
  }
  if (reason == "plateau") {
    return WantsNoMore(stop.plateau(), job.stop().plateau());
  }
  return reason != "steps" && reason != "non_finite" &&
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
  add("plateau.patience", stop.plateau().patience());
  return absl::StrJoin(conditions, " or ");
}

}  // namespace muster
