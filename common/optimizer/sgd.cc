#include <vector>

#include "common/codec/value_format.h"
#include "common/config/attributes.h"
#include "common/optimizer/sgd_ref.h"
#include "common/optimizer/update_rule_registry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/optimizer/sgd.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h: they are compiled once for each instruction set.
#include "common/optimizer/update_loop-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

void SgdKernel(const SgdFormula::Constants<float>& c,
               const EncodedValues& gradient, float* parameter, int64_t n) {
  const auto learning_rate = hn::Set(FloatTag(), c.learning_rate);
  const auto update = [&](auto g, auto& p) HWY_ATTR {
    p = hn::Sub(p, hn::Mul(learning_rate, g));
  };
  UpdateElements(gradient, n, update, parameter);
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {
namespace {

HWY_EXPORT(SgdKernel);

void ApplySgd(const SgdFormula::Constants<float>& c,
              const EncodedValues& gradient, float* parameter,
              absl::Span<float* const> /*slots*/, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SgdKernel)(c, gradient, parameter, n);
}

absl::Span<const AttrDef> SgdAttributes() {
  static const auto& attributes = *new std::vector<AttrDef>{
      FloatAttr("learning_rate", "step size").MoreThan(0).Default(0.01)};
  return attributes;
}

[[maybe_unused]] const bool kRegistered = UpdateRuleRegistry::Register(
    "sgd", MakeUpdateRuleEntry<SgdFormula, &ApplySgd>(&SgdAttributes));

}  // namespace
}  // namespace muster
#endif  // HWY_ONCE
