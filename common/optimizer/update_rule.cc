#include "common/optimizer/update_rule.h"

#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/optimizer/update_rule_registry.h"

namespace muster {
namespace {

// The arguments of every factory of an entry.
struct CheckedSpec {
  UpdateRuleEntry entry;
  Attributes attributes;
  LearningRate learning_rate;
};

absl::StatusOr<CheckedSpec> CheckSettings(const UpdateRuleEntry& entry,
                                          const OptimizerSpec& spec) {
  ASSIGN_OR_RETURN(Attributes attributes,
                   Attributes::Create(entry.attributes(), spec.attr()));
  ASSIGN_OR_RETURN(
      LearningRate learning_rate,
      LearningRate::Create(attributes.Float("learning_rate"), spec.schedule()));
  return CheckedSpec{entry, std::move(attributes), learning_rate};
}

// Only who knows the rows of an update can scale (ScaleLearningRate).
absl::Status CheckScaled(const OptimizerSpec& spec) {
  if (spec.learning_rate_scaling() == NONE &&
      spec.reference_batch_size() == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "learning_rate_scaling ",
      LearningRateScaling_Name(spec.learning_rate_scaling()),
      " (reference_batch_size ", spec.reference_batch_size(),
      ") was not carried out: whoever makes a rule gives it the final learning "
      "rate"));
}

absl::StatusOr<CheckedSpec> CheckSpec(const OptimizerSpec& spec) {
  ASSIGN_OR_RETURN(const UpdateRuleEntry entry,
                   UpdateRuleRegistry::Find(spec.name()));
  RETURN_IF_ERROR(CheckScaled(spec));
  absl::StatusOr<CheckedSpec> checked = CheckSettings(entry, spec);
  if (checked.ok()) return checked;
  return Annotate(checked.status(),
                  absl::StrCat("optimizer '", spec.name(), "'"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> CreateUpdateRule(
    const OptimizerSpec& spec) {
  ASSIGN_OR_RETURN(const CheckedSpec checked, CheckSpec(spec));
  return checked.entry.create(checked.attributes, checked.learning_rate);
}

absl::StatusOr<LearningRate> LearningRateOf(const OptimizerSpec& spec) {
  ASSIGN_OR_RETURN(const CheckedSpec checked, CheckSpec(spec));
  return checked.learning_rate;
}

template <typename T>
absl::StatusOr<std::unique_ptr<UpdateRuleOf<T>>> CreateReferenceRule(
    const OptimizerSpec& spec) {
  ASSIGN_OR_RETURN(const CheckedSpec checked, CheckSpec(spec));
  if constexpr (std::is_same_v<T, float>) {
    return checked.entry.create_float_reference(checked.attributes,
                                                checked.learning_rate);
  } else {
    return checked.entry.create_double_reference(checked.attributes,
                                                 checked.learning_rate);
  }
}

template absl::StatusOr<std::unique_ptr<UpdateRuleOf<float>>>
CreateReferenceRule<float>(const OptimizerSpec& spec);
template absl::StatusOr<std::unique_ptr<UpdateRuleOf<double>>>
CreateReferenceRule<double>(const OptimizerSpec& spec);

absl::StatusOr<absl::Span<const AttrDef>> UpdateRuleAttributes(
    absl::string_view name) {
  ASSIGN_OR_RETURN(const UpdateRuleEntry entry, UpdateRuleRegistry::Find(name));
  return entry.attributes();
}

std::vector<std::string> UpdateRuleNames() {
  return UpdateRuleRegistry::Names();
}

}  // namespace muster
