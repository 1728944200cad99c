#include "worker/backend/check_labels.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

absl::Status CheckRows(int64_t batch, int64_t rows) {
  if (rows >= 1 && rows <= batch) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("loss: rows must be in [1, ", batch, "], is ", rows));
}

absl::Status CheckLabels(const SoftmaxCrossEntropyDesc& desc,
                         const int32_t* labels, int64_t rows) {
  RETURN_IF_ERROR(CheckRows(desc.batch, rows));
  for (int64_t n = 0; n < rows; ++n) {
    if (labels[n] >= 0 && labels[n] < desc.classes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "softmax cross-entropy: the label of row ", n, " must be in [0, ",
        desc.classes, "), is ", labels[n],
        "; check that the data set has as many classes as the last layer"));
  }
  return absl::OkStatus();
}

absl::Status CheckProbabilities(absl::Span<const float> targets,
                                int64_t num_targets) {
  const auto wrong =
      std::find_if(targets.begin(), targets.end(),
                   [](float target) { return !(target >= 0 && target <= 1); });
  if (wrong == targets.end()) return absl::OkStatus();
  const int64_t at = wrong - targets.begin();
  return absl::InvalidArgumentError(absl::StrCat(
      "sigmoid cross-entropy: a target must be a probability from 0 to 1, is ",
      *wrong, " (target ", at % num_targets, " of row ", at / num_targets,
      " of a batch); correct the data, give each class an output, or take "
      "mean_squared_error for other numbers"));
}

}  // namespace muster
