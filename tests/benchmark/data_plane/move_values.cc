#include "tests/benchmark/data_plane/move_values.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/benchmark/data_plane/move_values.cc"
#include "hwy/foreach_target.h"  // Compiles this file once for each target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_ATTR inline void MoveVector(D d, const float* gradient, float* parameter,
                                absl::Span<float* const> slots, int64_t i) {
  auto value = hn::LoadU(d, parameter + i);
  hn::StoreU(hn::LoadU(d, gradient + i), d, parameter + i);
  for (float* const slot : slots) {
    const auto next = hn::LoadU(d, slot + i);
    hn::StoreU(value, d, slot + i);
    value = next;
  }
}

HWY_ATTR void Move(const float* gradient, float* parameter,
                   absl::Span<float* const> slots, int64_t elements) {
  const hn::ScalableTag<float> whole;
  const auto lanes = static_cast<int64_t>(hn::Lanes(whole));
  int64_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    MoveVector(whole, gradient, parameter, slots, i);
  }
  const hn::CappedTag<float, 1> one;
  for (; i < elements; ++i) MoveVector(one, gradient, parameter, slots, i);
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {

HWY_EXPORT(Move);

void MoveValues(const float* gradient, float* parameter,
                absl::Span<float* const> slots, int64_t elements) {
  HWY_DYNAMIC_DISPATCH(Move)(gradient, parameter, slots, elements);
}

}  // namespace muster
#endif  // HWY_ONCE
