#include <vector>

#include "common/codec/value_format.h"
#include "common/config/attributes.h"
#include "common/optimizer/momentum_ref.h"
#include "common/optimizer/update_rule_registry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/optimizer/momentum.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h: they are compiled once for each instruction set.
#include "common/optimizer/update_loop-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

void MomentumKernel(float learning_rate, float momentum,
                    const EncodedValues& gradient, float* parameter, float* u,
                    int64_t n) {
  const auto lr_v = hn::Set(FloatTag(), learning_rate);
  const auto mu_v = hn::Set(FloatTag(), momentum);
  const auto update = [&](auto g, auto& p, auto& u_v) HWY_ATTR {
    u_v = hn::Add(hn::Mul(mu_v, u_v), g);
    p = hn::Sub(p, hn::Mul(lr_v, u_v));
  };
  UpdateElements(gradient, n, update, parameter, u);
}

void NesterovKernel(float learning_rate, float momentum,
                    const EncodedValues& gradient, float* parameter, float* u,
                    int64_t n) {
  const auto lr_v = hn::Set(FloatTag(), learning_rate);
  const auto mu_v = hn::Set(FloatTag(), momentum);
  const auto update = [&](auto g, auto& p, auto& u_v) HWY_ATTR {
    u_v = hn::Add(hn::Mul(mu_v, u_v), g);
    const auto step = hn::Add(g, hn::Mul(mu_v, u_v));
    p = hn::Sub(p, hn::Mul(lr_v, step));
  };
  UpdateElements(gradient, n, update, parameter, u);
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {
namespace {

HWY_EXPORT(MomentumKernel);
HWY_EXPORT(NesterovKernel);

template <bool kAlwaysNesterov>
void ApplyMomentum(const typename MomentumFormula<
                       kAlwaysNesterov>::template Constants<float>& c,
                   const EncodedValues& gradient, float* parameter,
                   absl::Span<float* const> slots, int64_t n) {
  if (c.nesterov) {
    HWY_DYNAMIC_DISPATCH(NesterovKernel)
    (c.learning_rate, c.momentum, gradient, parameter, slots[0], n);
  } else {
    HWY_DYNAMIC_DISPATCH(MomentumKernel)
    (c.learning_rate, c.momentum, gradient, parameter, slots[0], n);
  }
}

absl::Span<const AttrDef> NesterovAttributes() {
  static const auto& attributes = *new std::vector<AttrDef>{
      FloatAttr("learning_rate", "step size").MoreThan(0).Default(0.01),
      FloatAttr("momentum", "decay of the sum of gradients")
          .AtLeast(0)
          .LessThan(1)
          .Default(0.9)};
  return attributes;
}

absl::Span<const AttrDef> MomentumAttributes() {
  static const auto& attributes = *new std::vector<AttrDef>{
      NesterovAttributes()[0], NesterovAttributes()[1],
      BoolAttr("nesterov", "looks one step ahead").Default(false)};
  return attributes;
}

[[maybe_unused]] const bool kMomentumRegistered = UpdateRuleRegistry::Register(
    "momentum",
    MakeUpdateRuleEntry<MomentumFormula</*kAlwaysNesterov=*/false>,
                        &ApplyMomentum<false>>(&MomentumAttributes));
[[maybe_unused]] const bool kNesterovRegistered = UpdateRuleRegistry::Register(
    "nesterov", MakeUpdateRuleEntry<MomentumFormula</*kAlwaysNesterov=*/true>,
                                    &ApplyMomentum<true>>(&NesterovAttributes));

}  // namespace
}  // namespace muster
#endif  // HWY_ONCE
