#ifndef WORKER_BACKEND_CPU_POOL2X2_KERNEL_H_
#define WORKER_BACKEND_CPU_POOL2X2_KERNEL_H_

#include <cstdint>

namespace muster {

// Max pool 2x2 with stride 2, fused with the ReLU before it, in the layout
// [planes, height, width, block]: oneDNN's nChw8c and nChw16c, where a plane is
// one image's block of channels. oneDNN's own pool and ReLU take several times
// as long on AVX2 (//tests/benchmark:pool_benchmark). The instruction set is
// chosen at run time. Thread-safe; both work on planes [begin, end) only.
struct Pool2x2Shape {
  int64_t planes = 0;
  int64_t height = 0;  // of src; dst has height / 2, width / 2
  int64_t width = 0;
  int64_t block = 8;  // a multiple of 8
};

// In the workspace, one byte an element of dst: which of the window's elements
// (row-major 0 to 3, the first of equals or NaN) is the maximum, or kNoneKept
// where the ReLU cut all of them.
constexpr uint8_t kNoneKept = 4;

// dst = maxpool(relu ? max(src, 0) : src), NaN of a window with a NaN.
// `workspace` may be null.
void MaxPool2x2Forward(const Pool2x2Shape& shape, bool relu, int64_t begin,
                       int64_t end, const float* src, float* dst,
                       uint8_t* workspace);

// diff_src of both. Rows and columns that no window covers get 0.
void MaxPool2x2Backward(const Pool2x2Shape& shape, int64_t begin, int64_t end,
                        const float* diff_dst, const uint8_t* workspace,
                        float* diff_src);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_POOL2X2_KERNEL_H_
