#ifndef WORKER_BACKEND_CPU_VECTOR_KERNELS_H_
#define WORKER_BACKEND_CPU_VECTOR_KERNELS_H_

#include <cstdint>

namespace muster {

// Loops over n floats, in any layout (padding is zero and stays zero). The
// instruction set is chosen at run time. No alignment is needed. Thread-safe.

// dst = a + b. dst may be a or b.
void AddVectors(const float* a, const float* b, float* dst, int64_t n);

// dst = src <= 0 ? 0 : src: NaN stays NaN. dst may be src.
void ReluForward(const float* src, float* dst, int64_t n);

// diff_src = dst > 0 ? diff_dst : 0.
void ReluBackward(const float* dst, const float* diff_dst, float* diff_src,
                  int64_t n);

// dst = mask ? src * scale : 0. dst may be src.
void ScaleMasked(const float* src, const uint8_t* mask, float scale, float* dst,
                 int64_t n);

// y += scale * x.
void AddScaled(const float* x, float scale, float* y, int64_t n);

// The sum of x * x, summed in double.
double SumOfSquares(const float* x, int64_t n);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_VECTOR_KERNELS_H_
