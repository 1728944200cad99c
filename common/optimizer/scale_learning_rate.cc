#include "common/optimizer/scale_learning_rate.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/attributes.h"
#include "common/optimizer/update_rule.h"

namespace muster {
namespace {

constexpr char kLearningRate[] = "learning_rate";

absl::Status CheckFields(const OptimizerSpec& spec) {
  const std::string name =
      LearningRateScaling_Name(spec.learning_rate_scaling());
  if (!LearningRateScaling_IsValid(spec.learning_rate_scaling())) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer.learning_rate_scaling must be NONE, LINEAR or "
                     "SQRT, found ",
                     static_cast<int>(spec.learning_rate_scaling())));
  }
  if (spec.reference_batch_size() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer.reference_batch_size must be 1 or more, found ",
                     spec.reference_batch_size()));
  }
  if (spec.learning_rate_scaling() == NONE && spec.reference_batch_size() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer.reference_batch_size is ", spec.reference_batch_size(),
        ", but optimizer.learning_rate_scaling is NONE, so that it has no "
        "effect; set learning_rate_scaling to LINEAR or SQRT, or remove it"));
  }
  if (spec.learning_rate_scaling() != NONE &&
      spec.reference_batch_size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer.learning_rate_scaling is ", name,
        ", but optimizer.reference_batch_size is not set; set it to the rows "
        "of an update for which the learning rate was chosen"));
  }
  return absl::OkStatus();
}

// The rule's learning rate as it is, its default if the spec has none.
absl::StatusOr<double> BaseRate(const OptimizerSpec& spec) {
  ASSIGN_OR_RETURN(const absl::Span<const AttrDef> table,
                   UpdateRuleAttributes(spec.name()));
  ASSIGN_OR_RETURN(const Attributes attributes,
                   Attributes::Create(table, spec.attr()));
  return attributes.Float(kLearningRate);
}

void SetBaseRate(double rate, OptimizerSpec* spec) {
  for (Attr& attr : *spec->mutable_attr()) {
    if (attr.name() != kLearningRate) continue;
    attr.set_f(rate);
    return;
  }
  Attr* const attr = spec->add_attr();
  attr->set_name(kLearningRate);
  attr->set_f(rate);
}

}  // namespace

absl::StatusOr<ScaledOptimizer> ScaleLearningRate(const OptimizerSpec& spec,
                                                  int64_t update_rows) {
  RETURN_IF_ERROR(CheckFields(spec));
  ScaledOptimizer scaled{spec, ""};
  scaled.spec.clear_learning_rate_scaling();
  scaled.spec.clear_reference_batch_size();
  if (spec.learning_rate_scaling() == NONE) return scaled;
  ASSIGN_OR_RETURN(const double rate, BaseRate(spec));
  const double k = static_cast<double>(update_rows) /
                   static_cast<double>(spec.reference_batch_size());
  const bool linear = spec.learning_rate_scaling() == LINEAR;
  const double factor = linear ? k : std::sqrt(k);
  SetBaseRate(rate * factor, &scaled.spec);
  ScheduleSpec* const schedule = scaled.spec.mutable_schedule();
  for (double& value : *schedule->mutable_value()) value *= factor;
  schedule->set_end_learning_rate(schedule->end_learning_rate() * factor);
  RETURN_IF_ERROR(Annotate(
      LearningRateOf(scaled.spec).status(),
      absl::StrCat("optimizer.learning_rate_scaling ",
                   LearningRateScaling_Name(spec.learning_rate_scaling()),
                   " by ", factor)));
  scaled.text =
      absl::StrCat("learning rate ", rate * factor, " = ", rate, " x ", factor,
                   " (", linear ? "LINEAR" : "SQRT of", ": ", update_rows,
                   " rows of an update / ", spec.reference_batch_size(), ")");
  return scaled;
}

}  // namespace muster
