#include "worker/hook/watched_evaluations.h"

#include <cmath>
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
  const EvaluationWatch::Outcome outcome = Count(global_step, result);
  ReportBest(global_step);
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
    keeper_->Finish(outcome.is_best && CheckHasAnswers(result).ok(),
                    watch_.history());
  }
  return outcome;
}

void WatchedEvaluations::ReportBest(int64_t global_step) const {
  std::set<std::string> reported;
  for (const WatchedFigure& figure :
       {watch_.history().stop(), watch_.history().schedule(),
        watch_.history().kept()}) {
    if (figure.metric().empty() || figure.best_step() != global_step ||
        std::isnan(figure.best()) || !reported.insert(figure.metric()).second) {
      continue;
    }
    reporter_.Info(absl::StrCat(
        figure.metric(), " ", ReadableNumber(figure.best(), kDigits),
        " of step ", global_step, " is the best one so far"));
  }
}

std::string WatchedEvaluations::DescribePlateau(const WatchedFigure& figure,
                                                int32_t evaluations) {
  return absl::StrCat(figure.metric(), " has not become better than ",
                      ReadableNumber(figure.best(), kDigits), " of step ",
                      figure.best_step(), " for ", evaluations,
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
