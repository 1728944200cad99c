#include "worker/hook/evaluation_watch.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

absl::StatusOr<FigureRule> MakeRule(absl::string_view field,
                                    const std::string& metric, MetricMode mode,
                                    double min_change,
                                    const std::vector<FigureDef>& figures) {
  std::vector<std::string> names;
  for (const FigureDef& figure : figures) {
    if (figure.name == metric) {
      const bool smaller =
          mode == BY_METRIC ? figure.smaller_is_better : mode == MIN;
      if (min_change >= 0) return FigureRule{metric, smaller, min_change};
      return absl::InvalidArgumentError(absl::StrCat(
          field, ".min_change must be 0 or more, is ", min_change));
    }
    names.push_back(figure.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, ".metric: no evaluation makes '", metric,
                   "'; this training's make ",
                   names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

absl::Status CheckPatience(absl::string_view field, int32_t patience) {
  if (patience >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ".patience must be 1 or more, is ", patience));
}

// The value of an evaluation; NaN if no row has an answer, and nullopt if the
// evaluation does not make it.
std::optional<double> ValueOf(const FigureRule& rule,
                              const EvaluationResult& result) {
  const std::optional<double> value = result.Find(rule.metric);
  if (value.has_value() && !CheckHasAnswers(result).ok()) return std::nan("");
  return value;
}

// Returns whether the value is the best one so far.
bool Count(const FigureRule& rule, const EvaluationResult& result,
           int64_t global_step, WatchedFigure* figure) {
  const std::optional<double> value = ValueOf(rule, result);
  if (!value.has_value()) return false;
  figure->set_metric(rule.metric);
  const bool has_best = figure->best_step() > 0;
  if (has_best ? rule.IsBetter(*value, figure->best())
               : std::isfinite(*value)) {
    figure->set_best(*value);
    figure->set_best_step(global_step);
    figure->set_bad_evaluations(0);
    return true;
  }
  figure->set_bad_evaluations(figure->bad_evaluations() + 1);
  return false;
}

}  // namespace

bool FigureRule::IsBetter(double value, double best) const {
  if (!std::isfinite(value)) return false;
  return smaller_is_better ? value < best - min_change
                           : value > best + min_change;
}

absl::StatusOr<EvaluationWatch::Options> EvaluationWatch::OptionsOf(
    const TrainingSpec& training, const std::vector<FigureDef>& figures) {
  Options options;
  if (training.checkpoint().has_keep_best()) {
    const KeepBestSpec& best = training.checkpoint().keep_best();
    ASSIGN_OR_RETURN(options.kept,
                     MakeRule("checkpoint.keep_best", best.metric(),
                              best.mode(), /*min_change=*/0, figures));
  }
  if (training.stop().has_plateau()) {
    const PlateauSpec& plateau = training.stop().plateau();
    ASSIGN_OR_RETURN(options.stop,
                     MakeRule("stop.plateau", plateau.metric(), plateau.mode(),
                              plateau.min_change(), figures));
    options.stop_patience = plateau.patience();
    RETURN_IF_ERROR(CheckPatience("stop.plateau", options.stop_patience));
  }
  const ScheduleSpec& schedule = training.optimizer().schedule();
  if (schedule.name() == "on_plateau") {
    ASSIGN_OR_RETURN(options.schedule,
                     MakeRule("optimizer.schedule", schedule.metric(),
                              schedule.mode(), schedule.min_change(), figures));
    options.schedule_patience = schedule.patience();
    options.factor = schedule.factor();
    RETURN_IF_ERROR(
        CheckPatience("optimizer.schedule", options.schedule_patience));
  }
  return options;
}

void EvaluationWatch::Enter(EvaluationHistory history) {
  history_ = std::move(history);
  if (history_.kept().metric() != options_.kept.metric) history_.clear_kept();
  if (history_.stop().metric() != options_.stop.metric) history_.clear_stop();
  if (history_.schedule().metric() != options_.schedule.metric) {
    history_.clear_schedule();
  }
}

bool EvaluationWatch::AddKept(int64_t global_step,
                              const EvaluationResult& result) {
  if (options_.kept.metric.empty() ||
      global_step <= history_.kept().best_step()) {
    return false;
  }
  history_.set_global_step(std::max(history_.global_step(), global_step));
  WatchedFigure kept = history_.kept();
  if (!Count(options_.kept, result, global_step, &kept)) return false;
  *history_.mutable_kept() = kept;
  return true;
}

EvaluationWatch::Outcome EvaluationWatch::Add(int64_t global_step,
                                              const EvaluationResult& result) {
  Outcome outcome;
  if (history_.global_step() >= global_step && history_.global_step() > 0) {
    return outcome;
  }
  history_.set_global_step(global_step);
  outcome.is_best = AddKept(global_step, result);
  if (!options_.stop.metric.empty()) {
    Count(options_.stop, result, global_step, history_.mutable_stop());
    outcome.stops = stops();
  }
  if (options_.schedule.metric.empty()) return outcome;
  Count(options_.schedule, result, global_step, history_.mutable_schedule());
  if (history_.schedule().bad_evaluations() <= options_.schedule_patience) {
    return outcome;
  }
  history_.mutable_schedule()->set_bad_evaluations(0);
  const double before = history_.learning_rate_factor() == 0
                            ? 1
                            : history_.learning_rate_factor();
  history_.set_learning_rate_factor_before(before);
  history_.set_learning_rate_factor(before * options_.factor);
  // Update global_step + 1 may be under way with the factor before.
  history_.set_factor_from(global_step + 2);
  outcome.lowers_rate = true;
  return outcome;
}

}  // namespace muster
