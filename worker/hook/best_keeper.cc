#include "worker/hook/best_keeper.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

BestKeeper::BestKeeper(CheckpointSaver* saver, Evaluate evaluate,
                       Reporter reporter)
    : saver_(saver),
      evaluate_(std::move(evaluate)),
      reporter_(std::move(reporter)) {}

void BestKeeper::Enter(const EvaluationHistory& history) {
  saver_->WaitForWriter();
  absl::MutexLock lock(&mu_);
  saved_ = history.kept();
}

absl::StatusOr<EvaluationResult> BestKeeper::EvaluateNow() {
  ASSIGN_OR_RETURN(cut_, saver_->Fix());
  absl::StatusOr<EvaluationResult> result = evaluate_(*cut_);
  if (result.ok()) {
    result->global_step = cut_->global_step;
  } else {
    Finish(/*is_best=*/false, {});
  }
  return result;
}

void BestKeeper::Finish(bool is_best, const EvaluationHistory& history) {
  std::optional<PendingSave> cut = std::exchange(cut_, std::nullopt);
  if (!cut.has_value()) return;
  if (!is_best) return cut->discard();
  cut->write = [this, history, write = cut->write_best] {
    const absl::StatusOr<std::string> folder = write(history);
    if (folder.ok()) {
      absl::MutexLock lock(&mu_);
      saved_ = history.kept();
    } else {
      ReportNotKept(history.kept().best_step());
    }
    return folder;
  };
  saver_->Save(*std::move(cut), /*done=*/nullptr);
}

EvaluationHistory BestKeeper::WithBest(EvaluationHistory history) const {
  history.clear_kept();
  absl::MutexLock lock(&mu_);
  if (!saved_.metric().empty()) *history.mutable_kept() = saved_;
  return history;
}

// The saver says why.
void BestKeeper::ReportNotKept(int64_t global_step) const {
  const EvaluationHistory former = WithBest({});
  reporter_.Warning(absl::StrCat(
      "the best model so far, of step ", global_step, ", is lost: ",
      former.has_kept()
          ? absl::StrCat("that of step ", former.kept().best_step(),
                         " is still the one that is kept")
          : "none is kept"));
}

}  // namespace muster
