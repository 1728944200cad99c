// The loops of all vectorized update rules, compiled once for each instruction
// set: included by a rule's source file after hwy/foreach_target.h.
//
// One pass over memory. `update` gets vectors of the gradient, the parameter
// and the slots and changes all but the first in place. A gradient that came
// encoded is decoded in registers. A tail shorter than a vector goes through a
// buffer and the same arithmetic, so an element's result does not depend on its
// position. Loads and stores are unaligned: a gradient lies where the network
// left it.

// Guarded once for each instruction set, as Highway's own *-inl.h files.
#if defined(COMMON_OPTIMIZER_UPDATE_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef COMMON_OPTIMIZER_UPDATE_LOOP_INL_H_
#undef COMMON_OPTIMIZER_UPDATE_LOOP_INL_H_
#else
#define COMMON_OPTIMIZER_UPDATE_LOOP_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <utility>

#include "common/codec/value_format.h"
#include "common/codec/value_load-inl.h"
#include "common/optimizer/update_constants.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// SquarableGradient, of each element.
template <typename Vector>
HWY_ATTR HWY_INLINE Vector Squarable(Vector gradient) {
  const auto smallest = hn::Set(FloatTag(), kSmallestSquarable<float>);
  return hn::IfThenZeroElse(hn::Lt(hn::Abs(gradient), smallest), gradient);
}

// The elements of one vector, from these pointers on.
template <typename Load, typename Update, typename... Streams>
HWY_ATTR HWY_INLINE void UpdateVector(const typename Load::Stored* gradient,
                                      const Update& update,
                                      Streams*... streams) {
  const FloatTag d;
  const auto update_all = [&](auto... vectors) HWY_ATTR {
    update(Load::At(gradient), vectors...);
    (hn::StoreU(vectors, d, streams), ...);
  };
  update_all(hn::LoadU(d, streams)...);
}

// `count` elements, fewer than a vector's. kStream counts the streams.
template <typename Load, typename Update, size_t... kStream,
          typename... Streams>
HWY_ATTR void UpdateTail(const typename Load::Stored* gradient, size_t count,
                         const Update& update, std::index_sequence<kStream...>,
                         Streams*... streams) {
  const FloatTag d;
  typename Load::Stored gradient_tail[hn::MaxLanes(d)] = {};
  std::memcpy(gradient_tail, gradient, count * sizeof(*gradient));
  float tails[sizeof...(Streams)][hn::MaxLanes(d)] = {};
  const size_t bytes = count * sizeof(float);
  (std::memcpy(tails[kStream], streams, bytes), ...);
  UpdateVector<Load>(gradient_tail, update, tails[kStream]...);
  (std::memcpy(streams, tails[kStream], bytes), ...);
}

template <typename Load, typename Update, typename... Streams>
HWY_ATTR void UpdateAll(const char* encoded, int64_t n, const Update& update,
                        Streams*... streams) {
  const auto* const gradient =
      reinterpret_cast<const typename Load::Stored*>(encoded);
  const auto lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    UpdateVector<Load>(gradient + i, update, (streams + i)...);
  }
  if (i == n) return;
  UpdateTail<Load>(gradient + i, static_cast<size_t>(n - i), update,
                   std::index_sequence_for<Streams...>(), (streams + i)...);
}

// Updates n elements: update(gradient, parameter, slot...). `streams` are the
// parameter and the slots.
template <typename Update, typename... Streams>
HWY_ATTR void UpdateElements(const EncodedValues& gradient, int64_t n,
                             const Update& update, Streams*... streams) {
  switch (gradient.format) {
    case ValueFormat::kFloat32:
      return UpdateAll<Float32Load>(gradient.data, n, update, streams...);
    case ValueFormat::kBf16:
      return UpdateAll<Bf16Load>(gradient.data, n, update, streams...);
    case ValueFormat::kFp16:
      return UpdateAll<Fp16Load>(gradient.data, n, update, streams...);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#endif  // COMMON_OPTIMIZER_UPDATE_LOOP_INL_H_
