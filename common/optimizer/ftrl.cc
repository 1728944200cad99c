#include <vector>

#include "common/codec/value_format.h"
#include "common/config/attributes.h"
#include "common/optimizer/ftrl_ref.h"
#include "common/optimizer/update_rule_registry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/optimizer/ftrl.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h: they are compiled once for each instruction set.
#include "common/optimizer/update_loop-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

// `after(root, strength, p, z)` ends the update of a vector of elements.
template <typename After>
HWY_ATTR void UpdateFtrl(const FtrlFormula::Constants<float>& c,
                         const EncodedValues& gradient, float* parameter,
                         float* slot_z, float* slot_n, int64_t count,
                         const After& after) {
  const FloatTag d;
  const auto inverse_rate = hn::Set(d, c.inverse_rate);
  const auto previous_inverse_rate = hn::Set(d, c.previous_inverse_rate);
  const auto beta = hn::Set(d, c.beta);
  const auto l1 = hn::Set(d, c.l1);
  const auto l2 = hn::Set(d, c.l2);
  const auto update = [&](auto pushed, auto& p, auto& z, auto& n) HWY_ATTR {
    const auto g = Squarable(pushed);
    const auto old_strength =
        hn::Mul(hn::Add(beta, hn::Sqrt(n)), previous_inverse_rate);
    n = hn::Add(n, hn::Mul(g, g));
    const auto root = hn::Add(beta, hn::Sqrt(n));
    const auto strength = hn::Mul(root, inverse_rate);
    const auto sigma = hn::Sub(strength, old_strength);
    z = hn::Add(z, hn::Sub(g, hn::Mul(sigma, p)));
    const auto shrunk = hn::Sub(z, hn::CopySign(l1, z));
    const auto minimum = hn::Div(hn::Neg(shrunk), hn::Add(strength, l2));
    p = hn::IfThenZeroElse(hn::Le(hn::Abs(z), l1), minimum);
    after(root, strength, p, z);
  };
  UpdateElements(gradient, count, update, parameter, slot_z, slot_n);
}

void FtrlKernel(const FtrlFormula::Constants<float>& c,
                const EncodedValues& gradient, float* parameter, float* slot_z,
                float* slot_n, int64_t count) {
  UpdateFtrl(c, gradient, parameter, slot_z, slot_n, count,
             [](auto /*root*/, auto /*strength*/, auto /*p*/, auto& /*z*/)
                 HWY_ATTR {});
}

void ScaledFtrlKernel(const FtrlFormula::Constants<float>& c,
                      const EncodedValues& gradient, float* parameter,
                      float* slot_z, float* slot_n, int64_t count) {
  const auto inverse_rate = hn::Set(FloatTag(), c.unscaled_inverse_rate);
  UpdateFtrl(c, gradient, parameter, slot_z, slot_n, count,
             [&](auto root, auto strength, auto p, auto& z) HWY_ATTR {
               const auto sigma =
                   hn::Sub(hn::Mul(root, inverse_rate), strength);
               z = hn::Sub(z, hn::Mul(sigma, p));
             });
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {
namespace {

HWY_EXPORT(FtrlKernel);
HWY_EXPORT(ScaledFtrlKernel);

void ApplyFtrl(const FtrlFormula::Constants<float>& c,
               const EncodedValues& gradient, float* parameter,
               absl::Span<float* const> slots, int64_t n) {
  if (c.scaled) {
    HWY_DYNAMIC_DISPATCH(ScaledFtrlKernel)
    (c, gradient, parameter, slots[0], slots[1], n);
  } else {
    HWY_DYNAMIC_DISPATCH(FtrlKernel)
    (c, gradient, parameter, slots[0], slots[1], n);
  }
}

absl::Span<const AttrDef> FtrlAttributes() {
  static const auto& attributes = *new std::vector<AttrDef>{
      FloatAttr("learning_rate", "alpha of the paper").MoreThan(0).Default(0.1),
      FloatAttr("beta", "damps the first steps").AtLeast(0).Default(1),
      FloatAttr("l1", "strength of the L1 penalty").AtLeast(0).Default(0),
      FloatAttr("l2", "strength of the L2 penalty").AtLeast(0).Default(0)};
  return attributes;
}

[[maybe_unused]] const bool kRegistered = UpdateRuleRegistry::Register(
    "ftrl", MakeUpdateRuleEntry<FtrlFormula, &ApplyFtrl>(&FtrlAttributes));

}  // namespace
}  // namespace muster
#endif  // HWY_ONCE
