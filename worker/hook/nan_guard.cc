#include "worker/hook/nan_guard.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/finite.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// A program may compute none.
bool IsLossBad(const StepRecord& step) {
  return step.has_loss && !std::isfinite(step.loss);
}

// The first value that is not finite: "the loss is nan"; "" if none is.
std::string FindNonFinite(const StepRecord& step) {
  for (const absl::Span<const StepTensor> gradients :
       {step.tensors, step.rows}) {
    for (const StepTensor& tensor : gradients) {
      const int64_t bad = FirstNonFinite(tensor.gradient);
      if (bad < 0) continue;
      return absl::StrCat("the ", tensor.trainable ? "gradient" : "change",
                          " of '", tensor.name, "' is ", tensor.gradient[bad],
                          " at element ", bad, " (the loss is ", step.loss,
                          ")");
    }
  }
  if (!IsLossBad(step)) return "";
  return absl::StrCat("the loss is ", step.loss,
                      step.tensors.empty() ? "" : ", all gradients are finite");
}

// The first ones, and then each that doubles their number: a training may live
// with such steps for days.
bool IsSaid(int64_t refused) {
  constexpr int64_t kAllUntil = 16;
  return refused <= kAllUntil || (refused & (refused - 1)) == 0;
}

}  // namespace

NanGuard::NanGuard(Options options) : options_(std::move(options)) {}

absl::StatusOr<PushDecision> NanGuard::BeforePush(const StepRecord& step) {
  std::string found;
  if (!step.gradients_are_finite || IsLossBad(step)) {
    RETURN_IF_ERROR(step.FetchTensors());
    found = FindNonFinite(step);
  }
  if (found.empty()) {
    in_a_row_ = 0;
    return PushDecision::kPush;
  }
  ++refused_;
  ++in_a_row_;
  const std::string what = absl::StrCat(
      "step ", step.step, " of ", options_.task_name, " at global step ",
      step.global_step, ": ", found,
      step.push_begun ? "; finite gradients of later layers had been pushed, "
                        "nothing else of it was"
                      : "; nothing of it was pushed");
  if (in_a_row_ < options_.max_refusals) {
    if (IsSaid(refused_)) {
      options_.reporter.Error(absl::StrCat(what, " (", in_a_row_, " of ",
                                           options_.max_refusals, " in a row, ",
                                           refused_, " in all)"));
    }
    return PushDecision::kRefuse;
  }
  const absl::Status failure = absl::OutOfRangeError(absl::StrCat(
      what, ", and the training ends after ", in_a_row_,
      " such steps in a row; a smaller learning rate often helps, the newest "
      "checkpoint is unharmed"));
  if (options_.stop_job == nullptr) return failure;
  options_.stop_job("non_finite", failure);
  return PushDecision::kRefuse;
}

}  // namespace muster
