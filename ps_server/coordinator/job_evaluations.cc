#include "ps_server/coordinator/job_evaluations.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/optimizer/learning_rate_factor.h"
#include "ps_server/caller/count_range.h"

namespace muster {
namespace {

// Several times what three names of figures take.
constexpr size_t kMaxHistoryBytes = 1024;

// Not NaN, either.
bool IsFactor(double factor) { return factor >= 0 && factor <= 1; }

}  // namespace

absl::Status JobEvaluations::Check(absl::string_view what,
                                   const EvaluationHistory& history) {
  if (IsCount(history.global_step()) && IsCount(history.factor_from()) &&
      IsFactor(history.learning_rate_factor()) &&
      IsFactor(history.learning_rate_factor_before()) &&
      history.ByteSizeLong() <= kMaxHistoryBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": evaluations until step ", history.global_step(), ", factor ",
      history.learning_rate_factor(), " of the learning rate from update ",
      history.factor_from(), " on and ", history.learning_rate_factor_before(),
      " before, in ", history.ByteSizeLong(),
      " bytes; wanted counts, factors from 0 to 1, at most ", kMaxHistoryBytes,
      " bytes"));
}

void JobEvaluations::Restore(const EvaluationHistory& history) {
  history_ = history;
  round_ = 0;
}

void JobEvaluations::Adopt(const EvaluationHistory& history) {
  if (history.global_step() >= history_.global_step()) history_ = history;
}

double JobEvaluations::FactorOf(int64_t update) const {
  return LearningRateFactor(history_, update);
}

double JobEvaluations::FactorOfRound(int64_t round) {
  if (round != round_) {
    round_ = round;
    round_factor_ = FactorOf(round);
  }
  return round_factor_;
}

}  // namespace muster
