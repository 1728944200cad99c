#include "worker/input/data_set/class_weights.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "google/protobuf/repeated_field.h"
#include "worker/input/data_set/data_schema.h"

namespace muster {
namespace {

absl::StatusOr<int64_t> NumberOf(
    const std::string& name,
    const google::protobuf::RepeatedPtrField<std::string>& names,
    int64_t num_classes) {
  if (!names.empty()) {
    const auto found = absl::c_find(names, name);
    if (found != names.end()) return found - names.begin();
    return absl::InvalidArgumentError(
        absl::StrCat("class_weight: unknown class '", ShownName(name), "'; ",
                     OfferNames(name, names)));
  }
  int64_t number;
  // "01" is no second name of class 1.
  if (absl::SimpleAtoi(name, &number) && number >= 0 && number < num_classes &&
      name == absl::StrCat(number)) {
    return number;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("class_weight: unknown class '", ShownName(name),
                   "'; the classes are the numbers 0 to ", num_classes - 1));
}

}  // namespace

absl::StatusOr<ClassWeights> ClassWeights::Create(
    const LabelSpec& labels, const std::vector<std::string>& names,
    int64_t num_classes) {
  ClassWeights weights;
  if (labels.class_weights.empty()) return weights;
  google::protobuf::RepeatedPtrField<std::string> shown;
  for (const std::string& name : names) *shown.Add() = Utf8OfBytes(name);
  weights.by_class_.assign(std::max<int64_t>(num_classes, shown.size()), 1.0f);
  for (const ClassWeight& of_class : labels.class_weights) {
    ASSIGN_OR_RETURN(const int64_t number,
                     NumberOf(of_class.class_(), shown, num_classes));
    weights.by_class_[number] = static_cast<float>(of_class.weight());
  }
  if (absl::c_all_of(weights.by_class_, [](float w) { return w == 0; })) {
    return absl::InvalidArgumentError(
        "class_weight: every class weighs 0 (in float32), so that no row would "
        "be trained on; give one of them a weight of 1, say");
  }
  return weights;
}

absl::Status ClassWeights::Weigh(int32_t label, float* weight) const {
  if (by_class_.empty()) return absl::OkStatus();
  *weight *= by_class_[label];
  if (std::isfinite(*weight)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the weight of the row times that of its class (class_weight) is too "
      "large a number");
}

}  // namespace muster
