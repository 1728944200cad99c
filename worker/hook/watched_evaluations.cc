#include "worker/hook/watched_evaluations.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/readable_number.h"

namespace muster {
namespace {

constexpr int kDigits = 6;

}  // namespace

WatchedEvaluations::WatchedEvaluations(const EvaluationWatch::Options& options,
                                       int64_t every_steps, Reporter reporter,
                                       RequestStop stop_job)
    : options_(options),
      reporter_(std::move(reporter)),
      stop_job_(std::move(stop_job)),
      watch_(options),
      period_(every_steps) {}

void WatchedEvaluations::KeepBest(BestKeeper* keeper, Settle settle) {
  keeper_ = keeper;
  settle_ = std::move(settle);
}

EvaluationHistory WatchedEvaluations::history() const {
  return keeper_ == nullptr ? watch_.history()
                            : keeper_->WithBest(watch_.history());
}

absl::Status WatchedEvaluations::AfterEnter(const EpochRecord& epoch) {
  watch_.Enter(keeper_ == nullptr
                   ? epoch.evaluations
                   : settle_(epoch.model_epoch, epoch.evaluations));
  if (keeper_ != nullptr) keeper_->Enter(watch_.history());
  period_.Start(history().global_step());
  // This start of the chief may want less of it than the one before.
  if (watch_.stops()) stop_job_("plateau", absl::OkStatus());
  return absl::OkStatus();
}

void WatchedEvaluations::OnEvaluation(int64_t global_step,
                                      const EvaluationResult& result) {
  const int64_t counted = watch_.history().global_step();
  const EvaluationWatch::Outcome outcome = Count(global_step, result);
  if (watch_.history().global_step() > counted) ReportBest(global_step);
  if (outcome.lowers_rate) ReportFactor();
  if (!outcome.stops) return;
  reporter_.Info(absl::StrCat(
      DescribePlateau(history().stop(), history().stop().bad_evaluations()),
      "the training ends"));
  stop_job_("plateau", absl::OkStatus());
}

EvaluationWatch::Outcome WatchedEvaluations::Count(
    int64_t global_step, const EvaluationResult& result) {
  const bool is_due = period_.IsOver(global_step);
  const bool is_fixed = keeper_ != nullptr && result.global_step.has_value();
  // A best model whose save has failed is none.
  if (is_fixed) watch_.Enter(history());
  EvaluationWatch::Outcome outcome;
  if (is_due) {
    period_.Start(global_step);
    outcome = watch_.Add(global_step, result);
  } else if (is_fixed) {
    outcome.is_best = watch_.AddKept(global_step, result);
  }
  if (is_fixed) {
    keeper_->Finish(outcome.is_best, watch_.history());
    ReportNothingKept(global_step);
  }
  return outcome;
}

void WatchedEvaluations::ReportBest(int64_t global_step) const {
  std::set<std::string> reported;
  for (const WatchedFigure& figure :
       {watch_.history().stop(), watch_.history().schedule(),
        watch_.history().kept()}) {
    if (figure.metric().empty() || figure.best_step() != global_step ||
        !reported.insert(figure.metric()).second) {
      continue;
    }
    reporter_.Info(absl::StrCat(
        figure.metric(), " ", ReadableNumber(figure.best(), kDigits),
        " of step ", global_step, " is the best one so far"));
  }
}

void WatchedEvaluations::ReportNothingKept(int64_t global_step) {
  if (watch_.history().has_kept() ||
      std::exchange(has_reported_nothing_kept_, true)) {
    return;
  }
  reporter_.Warning(absl::StrCat(
      "checkpoint.keep_best: ", options_.kept.metric, " of step ", global_step,
      " is no finite number, or no row has an answer: no model is kept as the "
      "best one until there is one"));
}

std::string WatchedEvaluations::DescribePlateau(const WatchedFigure& figure,
                                                int32_t evaluations) {
  const std::string best =
      figure.best_step() == 0
          ? " has not been a finite number"
          : absl::StrCat(" has not become better than ",
                         ReadableNumber(figure.best(), kDigits), " of step ",
                         figure.best_step());
  return absl::StrCat(figure.metric(), best, " for ", evaluations,
                      evaluations == 1 ? " evaluation: " : " evaluations: ");
}

void WatchedEvaluations::ReportFactor() const {
  std::string line = absl::StrCat(
      DescribePlateau(history().schedule(), options_.schedule_patience + 1),
      "learning rate times ", ReadableNumber(options_.factor, kDigits),
      " from update ", history().factor_from(), " on");
  if (history().learning_rate_factor_before() != 1) {
    absl::StrAppend(&line, ", times ",
                    ReadableNumber(history().learning_rate_factor(), kDigits),
                    " in all");
  }
  reporter_.Info(line);
}

}  // namespace muster
