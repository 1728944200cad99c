#include <vector>

#include "common/codec/value_format.h"
#include "common/config/attributes.h"
#include "common/optimizer/rmsprop_ref.h"
#include "common/optimizer/update_rule_registry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/optimizer/rmsprop.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h: they are compiled once for each instruction set.
#include "common/optimizer/update_loop-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

void RmspropKernel(const RmspropFormula::Constants<float>& c,
                   const EncodedValues& gradient, float* parameter,
                   float* slot_v, int64_t n) {
  const auto learning_rate = hn::Set(FloatTag(), c.learning_rate);
  const auto decay = hn::Set(FloatTag(), c.decay);
  const auto one_minus_decay = hn::Set(FloatTag(), c.one_minus_decay);
  const auto epsilon = hn::Set(FloatTag(), c.epsilon);
  const auto update = [&](auto pushed, auto& p, auto& v) HWY_ATTR {
    const auto g = Squarable(pushed);
    v = hn::Add(hn::Mul(decay, v), hn::Mul(one_minus_decay, hn::Mul(g, g)));
    const auto step = hn::Div(g, hn::Add(hn::Sqrt(v), epsilon));
    p = hn::Sub(p, hn::Mul(learning_rate, step));
  };
  UpdateElements(gradient, n, update, parameter, slot_v);
}

void RmspropMomentumKernel(const RmspropFormula::Constants<float>& c,
                           const EncodedValues& gradient, float* parameter,
                           float* slot_v, float* slot_u, int64_t n) {
  const auto learning_rate = hn::Set(FloatTag(), c.learning_rate);
  const auto decay = hn::Set(FloatTag(), c.decay);
  const auto one_minus_decay = hn::Set(FloatTag(), c.one_minus_decay);
  const auto epsilon = hn::Set(FloatTag(), c.epsilon);
  const auto momentum = hn::Set(FloatTag(), c.momentum);
  const auto update = [&](auto pushed, auto& p, auto& v, auto& u) HWY_ATTR {
    const auto g = Squarable(pushed);
    v = hn::Add(hn::Mul(decay, v), hn::Mul(one_minus_decay, hn::Mul(g, g)));
    const auto step = hn::Div(g, hn::Add(hn::Sqrt(v), epsilon));
    u = hn::Add(hn::Mul(momentum, u), step);
    p = hn::Sub(p, hn::Mul(learning_rate, u));
  };
  UpdateElements(gradient, n, update, parameter, slot_v, slot_u);
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {
namespace {

HWY_EXPORT(RmspropKernel);
HWY_EXPORT(RmspropMomentumKernel);

void ApplyRmsprop(const RmspropFormula::Constants<float>& c,
                  const EncodedValues& gradient, float* parameter,
                  absl::Span<float* const> slots, int64_t n) {
  if (slots.size() == 1) {
    HWY_DYNAMIC_DISPATCH(RmspropKernel)(c, gradient, parameter, slots[0], n);
  } else {
    HWY_DYNAMIC_DISPATCH(RmspropMomentumKernel)
    (c, gradient, parameter, slots[0], slots[1], n);
  }
}

absl::Span<const AttrDef> RmspropAttributes() {
  static const auto& attributes = *new std::vector<AttrDef>{
      FloatAttr("learning_rate", "step size").MoreThan(0).Default(0.01),
      FloatAttr("decay", "of the mean of squares")
          .AtLeast(0)
          .LessThan(1)
          .Default(0.99),
      FloatAttr("epsilon", "added to the root").AtLeast(1e-30).Default(1e-8),
      FloatAttr("momentum", "decay of the sum of steps; 0: none")
          .AtLeast(0)
          .LessThan(1)
          .Default(0)};
  return attributes;
}

[[maybe_unused]] const bool kRegistered = UpdateRuleRegistry::Register(
    "rmsprop",
    MakeUpdateRuleEntry<RmspropFormula, &ApplyRmsprop>(&RmspropAttributes));

}  // namespace
}  // namespace muster
#endif  // HWY_ONCE
