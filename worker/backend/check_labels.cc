#include "worker/backend/check_labels.h"

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

}  // namespace muster
