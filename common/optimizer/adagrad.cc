#include <vector>

#include "common/codec/value_format.h"
#include "common/config/attributes.h"
#include "common/optimizer/adagrad_ref.h"
#include "common/optimizer/update_rule_registry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/optimizer/adagrad.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h: they are compiled once for each instruction set.
#include "common/optimizer/update_loop-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

void AdagradKernel(const AdagradFormula::Constants<float>& c,
                   const EncodedValues& gradient, float* parameter,
                   float* accumulator, int64_t n) {
  const auto learning_rate = hn::Set(FloatTag(), c.learning_rate);
  const auto epsilon = hn::Set(FloatTag(), c.epsilon);
  const auto update = [&](auto pushed, auto& p, auto& a) HWY_ATTR {
    const auto g = Squarable(pushed);
    a = hn::Add(a, hn::Mul(g, g));
    p = hn::Sub(
        p, hn::Div(hn::Mul(learning_rate, g), hn::Add(hn::Sqrt(a), epsilon)));
  };
  UpdateElements(gradient, n, update, parameter, accumulator);
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {
namespace {

HWY_EXPORT(AdagradKernel);

void ApplyAdagrad(const AdagradFormula::Constants<float>& c,
                  const EncodedValues& gradient, float* parameter,
                  absl::Span<float* const> slots, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AdagradKernel)(c, gradient, parameter, slots[0], n);
}

absl::Span<const AttrDef> AdagradAttributes() {
  static const auto& attributes = *new std::vector<AttrDef>{
      FloatAttr("learning_rate", "step size").MoreThan(0).Default(0.01),
      FloatAttr("epsilon", "added to the root").AtLeast(1e-30).Default(1e-10),
      FloatAttr("initial_accumulator_value", "start of the sum of squares")
          .AtLeast(0)
          .Default(0)};
  return attributes;
}

[[maybe_unused]] const bool kRegistered = UpdateRuleRegistry::Register(
    "adagrad",
    MakeUpdateRuleEntry<AdagradFormula, &ApplyAdagrad>(&AdagradAttributes));

}  // namespace
}  // namespace muster
#endif  // HWY_ONCE
