#include <functional>
#include <vector>

#include "common/codec/value_format.h"
#include "common/config/attributes.h"
#include "common/optimizer/adam_ref.h"
#include "common/optimizer/update_rule_registry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/optimizer/adam.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h: they are compiled once for each instruction set.
#include "common/optimizer/update_loop-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

void AdamKernel(const AdamConstants<float>& c, const EncodedValues& gradient,
                float* parameter, float* slot_m, float* slot_v, int64_t n) {
  const FloatTag d;
  const auto beta1 = hn::Set(d, c.beta1);
  const auto one_minus_beta1 = hn::Set(d, c.one_minus_beta1);
  const auto beta2 = hn::Set(d, c.beta2);
  const auto one_minus_beta2 = hn::Set(d, c.one_minus_beta2);
  const auto step_size = hn::Set(d, c.step_size);
  const auto root_scale = hn::Set(d, c.root_scale);
  const auto epsilon = hn::Set(d, c.epsilon);
  const auto shrinkage = hn::Set(d, c.shrinkage);
  const auto update = [&](auto pushed, auto& p, auto& m, auto& v) HWY_ATTR {
    const auto g = Squarable(pushed);
    m = hn::Add(hn::Mul(beta1, m), hn::Mul(one_minus_beta1, g));
    v = hn::Add(hn::Mul(beta2, v), hn::Mul(one_minus_beta2, hn::Mul(g, g)));
    const auto root = hn::Add(hn::Mul(hn::Sqrt(v), root_scale), epsilon);
    p = hn::Sub(hn::Mul(shrinkage, p), hn::Div(hn::Mul(step_size, m), root));
  };
  UpdateElements(gradient, n, update, parameter, slot_m, slot_v);
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {
namespace {

HWY_EXPORT(AdamKernel);

void ApplyAdam(const AdamConstants<float>& c, const EncodedValues& gradient,
               float* parameter, absl::Span<float* const> slots, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AdamKernel)
  (c, gradient, parameter, slots[0], slots[1], n);
}

absl::Span<const AttrDef> AdamAttributes() {
  static const auto& attributes = *new std::vector<AttrDef>{
      FloatAttr("learning_rate", "step size").MoreThan(0).Default(0.001),
      FloatAttr("beta1", "decay of the mean")
          .AtLeast(0)
          .LessThan(1)
          .Default(0.9),
      FloatAttr("beta2", "decay of the mean of squares")
          .AtLeast(0)
          .LessThan(1)
          .Default(0.999),
      FloatAttr("epsilon", "added to the root").AtLeast(1e-30).Default(1e-8)};
  return attributes;
}

absl::Span<const AttrDef> AdamwAttributes() {
  static const auto& attributes =
      [] {
        auto& table = *new std::vector<AttrDef>(AdamAttributes().begin(),
                                                AdamAttributes().end());
        table.push_back(
            FloatAttr(
                "weight_decay",
                "fraction of the parameter that a step of size 1 takes away")
                .AtLeast(0)
                .Default(0.01));
        return std::cref(table);
      }()
          .get();
  return attributes;
}

[[maybe_unused]] const bool kAdamRegistered = UpdateRuleRegistry::Register(
    "adam", MakeUpdateRuleEntry<AdamFormula</*kDecoupledWeightDecay=*/false>,
                                &ApplyAdam>(&AdamAttributes));
[[maybe_unused]] const bool kAdamwRegistered = UpdateRuleRegistry::Register(
    "adamw", MakeUpdateRuleEntry<AdamFormula</*kDecoupledWeightDecay=*/true>,
                                 &ApplyAdam>(&AdamwAttributes));

}  // namespace
}  // namespace muster
#endif  // HWY_ONCE
