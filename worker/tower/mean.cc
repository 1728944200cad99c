#include "worker/tower/mean.h"

#include <cassert>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/tower/mean.cc"
#include "hwy/foreach_target.h"  // Compiles this file once for each target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

HWY_ATTR void Mean(absl::Span<const absl::Span<const float>> srcs, float scale,
                   absl::Span<float> dst) {
  const Floats f;
  const auto scales = hn::Set(f, scale);
  const size_t lanes = hn::Lanes(f);
  size_t i = 0;
  for (; i + lanes <= dst.size(); i += lanes) {
    auto sum = hn::LoadU(f, srcs[0].data() + i);
    for (size_t s = 1; s < srcs.size(); ++s) {
      sum = hn::Add(sum, hn::LoadU(f, srcs[s].data() + i));
    }
    hn::StoreU(hn::Mul(sum, scales), f, dst.data() + i);
  }
  for (; i < dst.size(); ++i) {
    float sum = srcs[0][i];
    for (size_t s = 1; s < srcs.size(); ++s) sum += srcs[s][i];
    dst[i] = sum * scale;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {
namespace {

HWY_EXPORT(Mean);

}  // namespace

void WriteMean(absl::Span<const absl::Span<const float>> srcs,
               absl::Span<float> dst) {
  for (const absl::Span<const float> src : srcs) {
    assert(src.size() == dst.size());
    static_cast<void>(src);
  }
  HWY_DYNAMIC_DISPATCH(Mean)
  (srcs, 1.0f / static_cast<float>(srcs.size()), dst);
}

void AddAndScale(absl::Span<const float> src, float scale,
                 absl::Span<float> sum) {
  assert(src.size() == sum.size());
  const absl::Span<const float> srcs[] = {sum, src};
  HWY_DYNAMIC_DISPATCH(Mean)(absl::MakeConstSpan(srcs), scale, sum);
}

}  // namespace muster
#endif  // HWY_ONCE
