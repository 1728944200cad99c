#include "worker/input/data_set/class_targets.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

absl::StatusOr<std::unique_ptr<DataSet>> ClassTargets::Create(
    std::unique_ptr<DataSet> classes, int64_t num_targets) {
  if (num_targets == 1 || classes->num_classes() <= num_targets) {
    return std::unique_ptr<DataSet>(
        new ClassTargets(std::move(classes), num_targets));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the data set has ", classes->num_classes(), " classes (the largest in ",
      classes->LargestLabelPlace(), "), the model's loss compares ",
      num_targets, " outputs: give it one for each class, or one in all"));
}

absl::Status ClassTargets::Read(int64_t index,
                                const ExampleMemory& into) const {
  int32_t label = 0;
  ExampleMemory stored = into;
  stored.label = &label;
  stored.targets = nullptr;
  RETURN_IF_ERROR(classes_->Read(index, stored));
  if (into.targets == nullptr) return absl::OkStatus();
  if (num_targets_ == 1) {
    into.targets[0] = static_cast<float>(label);
    return absl::OkStatus();
  }
  std::fill_n(into.targets, num_targets_, 0.0f);
  into.targets[label] = 1;
  return absl::OkStatus();
}

}  // namespace muster
