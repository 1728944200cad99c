// The loops of all vectorized update rules, compiled once for each instruction
// set: included by a rule's source file after hwy/foreach_target.h.
//
// One pass over memory. `update` gets vectors of the gradient, the parameter
// and the slots and changes the latter two in place. A tail shorter than a
// vector goes through a buffer and the same arithmetic, so an element's result
// does not depend on its position. Loads and stores are unaligned: a gradient
// lies where the network left it.

// Guarded once for each instruction set, as Highway's own *-inl.h files.
#if defined(COMMON_OPTIMIZER_UPDATE_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef COMMON_OPTIMIZER_UPDATE_LOOP_INL_H_
#undef COMMON_OPTIMIZER_UPDATE_LOOP_INL_H_
#else
#define COMMON_OPTIMIZER_UPDATE_LOOP_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;

// A rule without slots: update(gradient, parameter).
template <typename Update>
HWY_ATTR void UpdateElements(const float* gradient, float* parameter, int64_t n,
                             const Update& update) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto update_at = [&](const float* g, float* p) HWY_ATTR {
    auto p_v = hn::LoadU(d, p);
    update(hn::LoadU(d, g), p_v);
    hn::StoreU(p_v, d, p);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) update_at(gradient + i, parameter + i);
  if (i == n) return;
  const size_t rest = static_cast<size_t>(n - i) * sizeof(float);
  float g[hn::MaxLanes(d)] = {};
  float p[hn::MaxLanes(d)] = {};
  std::memcpy(g, gradient + i, rest);
  std::memcpy(p, parameter + i, rest);
  update_at(g, p);
  std::memcpy(parameter + i, p, rest);
}

// One slot: update(gradient, parameter, slot).
template <typename Update>
HWY_ATTR void UpdateElements(const float* gradient, float* parameter,
                             float* slot, int64_t n, const Update& update) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto update_at = [&](const float* g, float* p, float* s) HWY_ATTR {
    auto p_v = hn::LoadU(d, p);
    auto s_v = hn::LoadU(d, s);
    update(hn::LoadU(d, g), p_v, s_v);
    hn::StoreU(p_v, d, p);
    hn::StoreU(s_v, d, s);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    update_at(gradient + i, parameter + i, slot + i);
  }
  if (i == n) return;
  const size_t rest = static_cast<size_t>(n - i) * sizeof(float);
  float g[hn::MaxLanes(d)] = {};
  float p[hn::MaxLanes(d)] = {};
  float s[hn::MaxLanes(d)] = {};
  std::memcpy(g, gradient + i, rest);
  std::memcpy(p, parameter + i, rest);
  std::memcpy(s, slot + i, rest);
  update_at(g, p, s);
  std::memcpy(parameter + i, p, rest);
  std::memcpy(slot + i, s, rest);
}

// Two slots: update(gradient, parameter, slot0, slot1).
template <typename Update>
HWY_ATTR void UpdateElements(const float* gradient, float* parameter,
                             float* slot0, float* slot1, int64_t n,
                             const Update& update) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto update_at = [&](const float* g, float* p, float* s0, float* s1)
                             HWY_ATTR {
                               auto p_v = hn::LoadU(d, p);
                               auto s0_v = hn::LoadU(d, s0);
                               auto s1_v = hn::LoadU(d, s1);
                               update(hn::LoadU(d, g), p_v, s0_v, s1_v);
                               hn::StoreU(p_v, d, p);
                               hn::StoreU(s0_v, d, s0);
                               hn::StoreU(s1_v, d, s1);
                             };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    update_at(gradient + i, parameter + i, slot0 + i, slot1 + i);
  }
  if (i == n) return;
  const size_t rest = static_cast<size_t>(n - i) * sizeof(float);
  float g[hn::MaxLanes(d)] = {};
  float p[hn::MaxLanes(d)] = {};
  float s0[hn::MaxLanes(d)] = {};
  float s1[hn::MaxLanes(d)] = {};
  std::memcpy(g, gradient + i, rest);
  std::memcpy(p, parameter + i, rest);
  std::memcpy(s0, slot0 + i, rest);
  std::memcpy(s1, slot1 + i, rest);
  update_at(g, p, s0, s1);
  std::memcpy(parameter + i, p, rest);
  std::memcpy(slot0 + i, s0, rest);
  std::memcpy(slot1 + i, s1, rest);
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#endif  // COMMON_OPTIMIZER_UPDATE_LOOP_INL_H_
