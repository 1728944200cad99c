// The transforms of F(2x2, 5x5) in one dimension, on vectors of channels:
// include it after hwy/highway.h. winograd5x5_kernel.h says what for.
//
// With the polynomials d(x) of a tile's sources and g(x) of the weights, the
// points are 0, +-n, +-f and infinity. dst = A^T ((G g) * (B^T d)); the rest
// are transposes of these: diff_g = G^T ((A diff_dst) * (B^T d)).
#if defined(WORKER_BACKEND_CPU_WINOGRAD5X5_TRANSFORMS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef WORKER_BACKEND_CPU_WINOGRAD5X5_TRANSFORMS_INL_H_
#undef WORKER_BACKEND_CPU_WINOGRAD5X5_TRANSFORMS_INL_H_
#else
#define WORKER_BACKEND_CPU_WINOGRAD5X5_TRANSFORMS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kNear = 0.75f, kFar = 1.5f;
constexpr float kNear2 = kNear * kNear, kFar2 = kFar * kFar;
constexpr float kProduct = kNear2 * kFar2, kSum = kNear2 + kFar2;
// 1 / the product of a point's distances from the other finite points.
constexpr float kAtZero = 1 / kProduct;
constexpr float kAtNear = 1 / (2 * kNear2 * (kNear2 - kFar2));
constexpr float kAtFar = 1 / (2 * kFar2 * (kFar2 - kNear2));

template <class V>
struct Six {
  V v0, v1, v2, v3, v4, v5;
};

// From memory whose vectors lie `stride` floats apart, and to it.
template <class D>
HWY_INLINE Six<hn::Vec<D>> LoadSix(D d, const float* from, int64_t stride) {
  return {hn::LoadU(d, from),
          hn::LoadU(d, from + stride),
          hn::LoadU(d, from + 2 * stride),
          hn::LoadU(d, from + 3 * stride),
          hn::LoadU(d, from + 4 * stride),
          hn::LoadU(d, from + 5 * stride)};
}

template <class D>
HWY_INLINE void StoreSix(D d, const Six<hn::Vec<D>>& six, float* to,
                         int64_t stride) {
  hn::StoreU(six.v0, d, to);
  hn::StoreU(six.v1, d, to + stride);
  hn::StoreU(six.v2, d, to + 2 * stride);
  hn::StoreU(six.v3, d, to + 3 * stride);
  hn::StoreU(six.v4, d, to + 4 * stride);
  hn::StoreU(six.v5, d, to + 5 * stride);
}

// B^T: six sources at the points.
template <class D, class V>
HWY_INLINE Six<V> TransformSrc(D d, const Six<V>& src) {
  const V near2 = hn::Set(d, kNear2), far2 = hn::Set(d, kFar2);
  const V sum = hn::Set(d, kSum), product = hn::Set(d, kProduct);
  const V near = hn::Set(d, kNear), far = hn::Set(d, kFar);
  const V near_even = hn::NegMulAdd(far2, src.v2, src.v4);
  const V near_odd = hn::NegMulAdd(far2, src.v1, src.v3);
  const V far_even = hn::NegMulAdd(near2, src.v2, src.v4);
  const V far_odd = hn::NegMulAdd(near2, src.v1, src.v3);
  return {
      hn::MulAdd(product, src.v0, hn::NegMulAdd(sum, src.v2, src.v4)),
      hn::MulAdd(near, near_odd, near_even),
      hn::NegMulAdd(near, near_odd, near_even),
      hn::MulAdd(far, far_odd, far_even),
      hn::NegMulAdd(far, far_odd, far_even),
      hn::MulAdd(product, src.v1, hn::NegMulAdd(sum, src.v3, src.v5)),
  };
}

// A^T: two results from the values at the points.
template <class V>
struct Two {
  V v0, v1;
};
template <class D, class V>
HWY_INLINE Two<V> TransformDst(D d, const Six<V>& at) {
  const V near = hn::Set(d, kNear), far = hn::Set(d, kFar);
  const V even = hn::Add(hn::Add(at.v1, at.v2), hn::Add(at.v3, at.v4));
  const V odd = hn::MulAdd(near, hn::Sub(at.v1, at.v2), at.v5);
  return {hn::Add(at.v0, even), hn::MulAdd(far, hn::Sub(at.v3, at.v4), odd)};
}

// A: two gradients at the points.
template <class D, class V>
HWY_INLINE Six<V> TransformDiffDst(D d, V v0, V v1) {
  const V near = hn::Set(d, kNear), far = hn::Set(d, kFar);
  return {v0,
          hn::MulAdd(near, v1, v0),
          hn::NegMulAdd(near, v1, v0),
          hn::MulAdd(far, v1, v0),
          hn::NegMulAdd(far, v1, v0),
          v1};
}

// G: five weights at the points; v5 is not read.
template <class D, class V>
HWY_INLINE Six<V> TransformWeights(D d, const Six<V>& g) {
  const V near2 = hn::Set(d, kNear2), far2 = hn::Set(d, kFar2);
  const V near_even = hn::MulAdd(near2, hn::MulAdd(near2, g.v4, g.v2), g.v0);
  const V far_even = hn::MulAdd(far2, hn::MulAdd(far2, g.v4, g.v2), g.v0);
  const V near_odd = hn::Mul(hn::Set(d, kNear), hn::MulAdd(near2, g.v3, g.v1));
  const V far_odd = hn::Mul(hn::Set(d, kFar), hn::MulAdd(far2, g.v3, g.v1));
  const V at_near = hn::Set(d, kAtNear), at_far = hn::Set(d, kAtFar);
  return {hn::Mul(hn::Set(d, kAtZero), g.v0),
          hn::Mul(at_near, hn::Add(near_even, near_odd)),
          hn::Mul(at_near, hn::Sub(near_even, near_odd)),
          hn::Mul(at_far, hn::Add(far_even, far_odd)),
          hn::Mul(at_far, hn::Sub(far_even, far_odd)),
          g.v4};
}

// G^T: the gradients of five weights (v5 is 0) from those at the points.
template <class D, class V>
HWY_INLINE Six<V> TransformDiffWeights(D d, const Six<V>& u) {
  const V at_near = hn::Set(d, kAtNear), at_far = hn::Set(d, kAtFar);
  const V near_even = hn::Mul(at_near, hn::Add(u.v1, u.v2));
  const V far_even = hn::Mul(at_far, hn::Add(u.v3, u.v4));
  const V near_odd = hn::Mul(hn::Set(d, kNear * kAtNear), hn::Sub(u.v1, u.v2));
  const V far_odd = hn::Mul(hn::Set(d, kFar * kAtFar), hn::Sub(u.v3, u.v4));
  const V near2 = hn::Set(d, kNear2), far2 = hn::Set(d, kFar2);
  const V even2 = hn::Mul(near2, near_even),
          far_even2 = hn::Mul(far2, far_even);
  return {hn::MulAdd(hn::Set(d, kAtZero), u.v0, hn::Add(near_even, far_even)),
          hn::Add(near_odd, far_odd),
          hn::Add(even2, far_even2),
          hn::MulAdd(near2, near_odd, hn::Mul(far2, far_odd)),
          hn::MulAdd(near2, even2, hn::MulAdd(far2, far_even2, u.v5)),
          hn::Zero(d)};
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#endif  // WORKER_BACKEND_CPU_WINOGRAD5X5_TRANSFORMS_INL_H_
