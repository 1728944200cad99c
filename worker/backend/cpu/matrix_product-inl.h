// A small matrix product whose operands are in cache, for kernels that are
// compiled once for each instruction set: include it after hwy/highway.h.
#if defined(WORKER_BACKEND_CPU_MATRIX_PRODUCT_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef WORKER_BACKEND_CPU_MATRIX_PRODUCT_INL_H_
#undef WORKER_BACKEND_CPU_MATRIX_PRODUCT_INL_H_
#else
#define WORKER_BACKEND_CPU_MATRIX_PRODUCT_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

using ProductFloats = hwy::HWY_NAMESPACE::CappedTag<float, 16>;
using ProductVector = hwy::HWY_NAMESPACE::Vec<ProductFloats>;

// c [rows, columns] = or += a b. Element (r, k) of a is at r * row + k * step:
// one of the two is 1. The rows of b and c lie `columns` apart.
struct MatrixProduct {
  int64_t rows = 0;     // even
  int64_t columns = 0;  // a multiple of 16
  int64_t depth = 0;
  int64_t a_row = 1;
  int64_t a_step = 1;
  bool add = false;
};

// Registers, as members of nested structs: g++ keeps these in registers without
// loops that it would have to unroll first.
template <int kVectors>
struct ProductRow {
  ProductRow<kVectors / 2> low, high;
};
template <>
struct ProductRow<1> {
  ProductVector vector;
};
template <int kRows, int kVectors>
struct ProductTile {
  ProductTile<kRows / 2, kVectors> upper;
  ProductTile<kRows - kRows / 2, kVectors> lower;
};
template <int kVectors>
struct ProductTile<1, kVectors> {
  ProductRow<kVectors> row;
};

template <int kVectors>
HWY_INLINE ProductRow<kVectors> LoadProductRow(const float* from) {
  const ProductFloats f;
  if constexpr (kVectors == 1) {
    return {hwy::HWY_NAMESPACE::LoadU(f, from)};
  } else {
    constexpr int kHalf = kVectors / 2;
    return {LoadProductRow<kHalf>(from),
            LoadProductRow<kHalf>(from + kHalf * hwy::HWY_NAMESPACE::Lanes(f))};
  }
}

template <int kVectors>
HWY_INLINE void MulAddRow(ProductVector a, const ProductRow<kVectors>& b,
                          ProductRow<kVectors>* sum) {
  if constexpr (kVectors == 1) {
    sum->vector = hwy::HWY_NAMESPACE::MulAdd(a, b.vector, sum->vector);
  } else {
    MulAddRow(a, b.low, &sum->low);
    MulAddRow(a, b.high, &sum->high);
  }
}

template <int kRows, int kVectors>
HWY_INLINE void MulAddTile(const float* a, int64_t a_row,
                           const ProductRow<kVectors>& b,
                           ProductTile<kRows, kVectors>* sum) {
  if constexpr (kRows == 1) {
    MulAddRow(hwy::HWY_NAMESPACE::Set(ProductFloats(), *a), b, &sum->row);
  } else {
    MulAddTile(a, a_row, b, &sum->upper);
    MulAddTile(a + kRows / 2 * a_row, a_row, b, &sum->lower);
  }
}

template <int kVectors>
HWY_INLINE void ZeroRow(ProductRow<kVectors>* row) {
  if constexpr (kVectors == 1) {
    row->vector = hwy::HWY_NAMESPACE::Zero(ProductFloats());
  } else {
    ZeroRow(&row->low);
    ZeroRow(&row->high);
  }
}

template <int kRows, int kVectors>
HWY_INLINE void ZeroTile(ProductTile<kRows, kVectors>* tile) {
  if constexpr (kRows == 1) {
    ZeroRow(&tile->row);
  } else {
    ZeroTile(&tile->upper);
    ZeroTile(&tile->lower);
  }
}

template <int kVectors>
HWY_INLINE void StoreProductRow(const ProductRow<kVectors>& row, bool add,
                                float* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const ProductFloats f;
  if constexpr (kVectors == 1) {
    hn::StoreU(add ? hn::Add(hn::LoadU(f, to), row.vector) : row.vector, f, to);
  } else {
    StoreProductRow(row.low, add, to);
    StoreProductRow(row.high, add, to + kVectors / 2 * hn::Lanes(f));
  }
}

template <int kRows, int kVectors>
HWY_INLINE void StoreTile(const ProductTile<kRows, kVectors>& tile,
                          int64_t c_row, bool add, float* to) {
  if constexpr (kRows == 1) {
    StoreProductRow(tile.row, add, to);
  } else {
    StoreTile(tile.upper, c_row, add, to);
    StoreTile(tile.lower, c_row, add, to + kRows / 2 * c_row);
  }
}

template <int kRows, int kVectors>
HWY_NOINLINE void MultiplyTile(const MatrixProduct& product, const float* a,
                               const float* b, float* c) {
  ProductTile<kRows, kVectors> sum;
  ZeroTile(&sum);
  const int64_t a_row = product.a_row, a_step = product.a_step;
  const int64_t columns = product.columns;
  for (int64_t k = product.depth; k > 0; --k) {
    MulAddTile(a, a_row, LoadProductRow<kVectors>(b), &sum);
    a += a_step;
    b += columns;
  }
  StoreTile(sum, columns, product.add, c);
}

// As many columns as fit of the rest from `column` on, kVectors at a time, then
// fewer.
template <int kVectors>
inline void MultiplyColumns(const MatrixProduct& product, int64_t column,
                            const float* a, const float* b, float* c) {
  // AVX-512 has 32 registers: 24 sums, the others 16: 12 sums.
  constexpr int kRows = HWY_TARGET <= HWY_AVX3 && kVectors == 2 ? 12 : 6;
  const int64_t width =
      kVectors *
      static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(ProductFloats()));
  for (; column + width <= product.columns; column += width) {
    int64_t row = 0;
    for (; row + kRows <= product.rows; row += kRows) {
      MultiplyTile<kRows, kVectors>(product, a + row * product.a_row,
                                    b + column,
                                    c + row * product.columns + column);
    }
    for (; row < product.rows; row += 2) {
      MultiplyTile<2, kVectors>(product, a + row * product.a_row, b + column,
                                c + row * product.columns + column);
    }
  }
  if constexpr (kVectors > 1) {
    MultiplyColumns<kVectors / 2>(product, column, a, b, c);
  }
}

inline void Multiply(const MatrixProduct& product, const float* a,
                     const float* b, float* c) {
  constexpr int kVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
  MultiplyColumns<kVectors>(product, /*column=*/0, a, b, c);
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#endif  // WORKER_BACKEND_CPU_MATRIX_PRODUCT_INL_H_
