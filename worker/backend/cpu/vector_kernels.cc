#include "worker/backend/cpu/vector_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/backend/cpu/vector_kernels.cc"
#include "hwy/foreach_target.h"  // Compiles this file once for each target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

// Whole vectors in [0, n).
HWY_ATTR inline int64_t WholeVectors(int64_t n) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  return n / lanes * lanes;
}

HWY_ATTR void Add(const float* a, const float* b, float* dst, int64_t n) {
  const Floats f;
  const int64_t whole = WholeVectors(n);
  int64_t i = 0;
  for (; i < whole; i += hn::Lanes(f)) {
    hn::StoreU(hn::Add(hn::LoadU(f, a + i), hn::LoadU(f, b + i)), f, dst + i);
  }
  for (; i < n; ++i) dst[i] = a[i] + b[i];
}

// Without Max: of NaN and 0 the instruction takes 0.
HWY_ATTR void Relu(const float* src, float* dst, int64_t n) {
  const Floats f;
  const auto zero = hn::Zero(f);
  const int64_t whole = WholeVectors(n);
  int64_t i = 0;
  for (; i < whole; i += hn::Lanes(f)) {
    const auto value = hn::LoadU(f, src + i);
    hn::StoreU(hn::IfThenZeroElse(hn::Le(value, zero), value), f, dst + i);
  }
  for (; i < n; ++i) dst[i] = src[i] <= 0 ? 0 : src[i];
}

HWY_ATTR void ReluGradient(const float* dst, const float* diff_dst,
                           float* diff_src, int64_t n) {
  const Floats f;
  const auto zero = hn::Zero(f);
  const int64_t whole = WholeVectors(n);
  int64_t i = 0;
  for (; i < whole; i += hn::Lanes(f)) {
    const auto passes = hn::Gt(hn::LoadU(f, dst + i), zero);
    hn::StoreU(hn::IfThenElseZero(passes, hn::LoadU(f, diff_dst + i)), f,
               diff_src + i);
  }
  for (; i < n; ++i) diff_src[i] = dst[i] > 0 ? diff_dst[i] : 0;
}

HWY_ATTR void Masked(const float* src, const uint8_t* mask, float scale,
                     float* dst, int64_t n) {
  const Floats f;
  const hn::RebindToSigned<Floats> ints;
  const hn::Rebind<uint8_t, Floats> bytes;
  const auto factor = hn::Set(f, scale);
  const int64_t whole = WholeVectors(n);
  int64_t i = 0;
  for (; i < whole; i += hn::Lanes(f)) {
    const auto kept =
        hn::Gt(hn::PromoteTo(ints, hn::LoadU(bytes, mask + i)), hn::Zero(ints));
    hn::StoreU(hn::IfThenElseZero(hn::RebindMask(f, kept),
                                  hn::Mul(hn::LoadU(f, src + i), factor)),
               f, dst + i);
  }
  for (; i < n; ++i) dst[i] = mask[i] ? src[i] * scale : 0;
}

HWY_ATTR void Axpy(const float* x, float scale, float* y, int64_t n) {
  const Floats f;
  const auto factor = hn::Set(f, scale);
  const int64_t whole = WholeVectors(n);
  int64_t i = 0;
  for (; i < whole; i += hn::Lanes(f)) {
    hn::StoreU(hn::MulAdd(factor, hn::LoadU(f, x + i), hn::LoadU(f, y + i)), f,
               y + i);
  }
  for (; i < n; ++i) y[i] += scale * x[i];
}

HWY_ATTR double Squares(const float* x, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, hn::ScalableTag<double>> f;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = n / (2 * lanes) * (2 * lanes);
  // Two sums hide the latency of the additions.
  auto even = hn::Zero(d), odd = hn::Zero(d);
  int64_t i = 0;
  for (; i < whole; i += 2 * lanes) {
    const auto a = hn::PromoteTo(d, hn::LoadU(f, x + i));
    const auto b = hn::PromoteTo(d, hn::LoadU(f, x + i + lanes));
    even = hn::MulAdd(a, a, even);
    odd = hn::MulAdd(b, b, odd);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {

HWY_EXPORT(Add);
HWY_EXPORT(Relu);
HWY_EXPORT(ReluGradient);
HWY_EXPORT(Masked);
HWY_EXPORT(Axpy);
HWY_EXPORT(Squares);

void AddVectors(const float* a, const float* b, float* dst, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Add)(a, b, dst, n);
}

void ReluForward(const float* src, float* dst, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Relu)(src, dst, n);
}

void ReluBackward(const float* dst, const float* diff_dst, float* diff_src,
                  int64_t n) {
  HWY_DYNAMIC_DISPATCH(ReluGradient)(dst, diff_dst, diff_src, n);
}

void ScaleMasked(const float* src, const uint8_t* mask, float scale, float* dst,
                 int64_t n) {
  HWY_DYNAMIC_DISPATCH(Masked)(src, mask, scale, dst, n);
}

void AddScaled(const float* x, float scale, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(Axpy)(x, scale, y, n);
}

double SumOfSquares(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(Squares)(x, n);
}

}  // namespace muster
#endif  // HWY_ONCE
