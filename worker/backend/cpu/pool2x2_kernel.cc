#include "worker/backend/cpu/pool2x2_kernel.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/backend/cpu/pool2x2_kernel.cc"
#include "hwy/foreach_target.h"  // Compiles this file once for each target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Eight floats or fewer: every block is a multiple.
using Floats = hn::CappedTag<float, 8>;
using Ints = hn::RebindToSigned<Floats>;
using Bytes = hn::Rebind<uint8_t, Floats>;
using FloatVector = hn::Vec<Floats>;
using IntVector = hn::Vec<Ints>;

// A window's four vectors: the maximum of each lane, and where it was.
struct Maximum {
  FloatVector value;
  IntVector index;
};

HWY_ATTR inline Maximum MaximumOf(const float* upper, const float* lower,
                                  int64_t block) {
  const Floats f;
  const Ints i;
  Maximum max{hn::LoadU(f, upper), hn::Zero(i)};
  const float* const others[] = {upper + block, lower, lower + block};
  for (int k = 0; k < 3; ++k) {
    const auto value = hn::LoadU(f, others[k]);
    // The first of equals stays, and the first NaN; no number is <= a NaN.
    const auto stays = hn::Or(hn::Le(value, max.value), hn::IsNaN(max.value));
    max.value = hn::IfThenElse(stays, max.value, value);
    max.index =
        hn::IfThenElse(hn::RebindMask(i, stays), max.index, hn::Set(i, k + 1));
  }
  return max;
}

HWY_ATTR inline void StoreIndex(IntVector index, uint8_t* to) {
  const Bytes b;
  hn::StoreU(hn::DemoteTo(b, index), b, to);
}

template <bool kRelu>
HWY_ATTR void ForwardRow(const float* upper, const float* lower,
                         int64_t columns, int64_t block, float* dst,
                         uint8_t* workspace) {
  const Floats f;
  const Ints i;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto zero = hn::Zero(f);
  const auto none = hn::Set(i, kNoneKept);
  for (int64_t x = 0; x < columns; ++x) {
    for (int64_t c = 0; c < block; c += lanes) {
      const int64_t from = 2 * x * block + c, to = x * block + c;
      Maximum max = MaximumOf(upper + from, lower + from, block);
      if (kRelu) {
        const auto cut = hn::Le(max.value, zero);
        max.value = hn::IfThenElse(cut, zero, max.value);
        max.index = hn::IfThenElse(hn::RebindMask(i, cut), none, max.index);
      }
      hn::StoreU(max.value, f, dst + to);
      if (workspace != nullptr) StoreIndex(max.index, workspace + to);
    }
  }
}

template <bool kRelu>
HWY_ATTR void Forward(const Pool2x2Shape& shape, int64_t begin, int64_t end,
                      const float* src, float* dst, uint8_t* workspace) {
  const int64_t rows = shape.height / 2, columns = shape.width / 2;
  const int64_t src_row = shape.width * shape.block;
  const int64_t dst_row = columns * shape.block;
  for (int64_t plane = begin; plane < end; ++plane) {
    for (int64_t y = 0; y < rows; ++y) {
      const float* upper = src + (plane * shape.height + 2 * y) * src_row;
      const int64_t to = (plane * rows + y) * dst_row;
      ForwardRow<kRelu>(upper, upper + src_row, columns, shape.block, dst + to,
                        workspace == nullptr ? nullptr : workspace + to);
    }
  }
}

HWY_ATTR void ForwardRelu(const Pool2x2Shape& shape, int64_t begin, int64_t end,
                          const float* src, float* dst, uint8_t* workspace) {
  Forward<true>(shape, begin, end, src, dst, workspace);
}

HWY_ATTR void ForwardPlain(const Pool2x2Shape& shape, int64_t begin,
                           int64_t end, const float* src, float* dst,
                           uint8_t* workspace) {
  Forward<false>(shape, begin, end, src, dst, workspace);
}

HWY_ATTR inline void BackwardRow(const float* diff_dst,
                                 const uint8_t* workspace, int64_t columns,
                                 int64_t block, float* upper, float* lower) {
  const Floats f;
  const Ints i;
  const Bytes b;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(f));
  for (int64_t x = 0; x < columns; ++x) {
    for (int64_t c = 0; c < block; c += lanes) {
      const int64_t from = x * block + c, to = 2 * x * block + c;
      const auto diff = hn::LoadU(f, diff_dst + from);
      const auto index = hn::PromoteTo(i, hn::LoadU(b, workspace + from));
      float* const targets[] = {upper + to, upper + to + block, lower + to,
                                lower + to + block};
      for (int k = 0; k < 4; ++k) {
        const auto here = hn::Eq(index, hn::Set(i, k));
        hn::StoreU(hn::IfThenElseZero(hn::RebindMask(f, here), diff), f,
                   targets[k]);
      }
    }
  }
}

HWY_ATTR void Backward(const Pool2x2Shape& shape, int64_t begin, int64_t end,
                       const float* diff_dst, const uint8_t* workspace,
                       float* diff_src) {
  const int64_t rows = shape.height / 2, columns = shape.width / 2;
  const int64_t src_row = shape.width * shape.block;
  const int64_t dst_row = columns * shape.block;
  const int64_t odd_column = shape.width % 2 * shape.block;
  for (int64_t plane = begin; plane < end; ++plane) {
    float* row = diff_src + plane * shape.height * src_row;
    for (int64_t y = 0; y < rows; ++y, row += 2 * src_row) {
      const int64_t from = (plane * rows + y) * dst_row;
      float* const lower = row + src_row;
      BackwardRow(diff_dst + from, workspace + from, columns, shape.block, row,
                  lower);
      std::memset(row + src_row - odd_column, 0, odd_column * sizeof(float));
      std::memset(lower + src_row - odd_column, 0, odd_column * sizeof(float));
    }
    if (shape.height % 2 == 1) std::memset(row, 0, src_row * sizeof(float));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {

HWY_EXPORT(ForwardRelu);
HWY_EXPORT(ForwardPlain);
HWY_EXPORT(Backward);

void MaxPool2x2Forward(const Pool2x2Shape& shape, bool relu, int64_t begin,
                       int64_t end, const float* src, float* dst,
                       uint8_t* workspace) {
  if (relu) {
    HWY_DYNAMIC_DISPATCH(ForwardRelu)(shape, begin, end, src, dst, workspace);
  } else {
    HWY_DYNAMIC_DISPATCH(ForwardPlain)(shape, begin, end, src, dst, workspace);
  }
}

void MaxPool2x2Backward(const Pool2x2Shape& shape, int64_t begin, int64_t end,
                        const float* diff_dst, const uint8_t* workspace,
                        float* diff_src) {
  HWY_DYNAMIC_DISPATCH(Backward)
  (shape, begin, end, diff_dst, workspace, diff_src);
}

}  // namespace muster
#endif  // HWY_ONCE
