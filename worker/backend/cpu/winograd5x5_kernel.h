#ifndef WORKER_BACKEND_CPU_WINOGRAD5X5_KERNEL_H_
#define WORKER_BACKEND_CPU_WINOGRAD5X5_KERNEL_H_

#include <cstdint>

namespace muster {

// Convolution with a 5x5 window and stride 1 by Winograd's algorithm F(2x2,
// 5x5): 36 multiplications for each 2x2 tile of dst and pair of channels, where
// the direct sum takes 100. A tile's 6x6 sources and the weights are evaluated
// at 6x6 points, multiplied there (a matrix product over the channels for each
// point), and interpolated.
//
// The points are 0, +-3/4, +-3/2 and infinity: with them a result's rounding
// error is that of the direct sum (1.4 times in the mean, less at the largest);
// the usual 0, +-1, +-2 make it three times as large.
//
// Activations lie in [batch, channels / block, height, width, block]: oneDNN's
// nChw8c and nChw16c. Weights are canonical. The instruction set is chosen at
// run time. Thread-safe; results depend on the range of tiles alone.
struct Winograd5x5Shape {
  int64_t batch = 0;
  int64_t src_channels = 0;  // a multiple of 16, as dst_channels
  int64_t dst_channels = 0;
  int64_t src_height = 0;
  int64_t src_width = 0;
  int64_t dst_height = 0;
  int64_t dst_width = 0;
  int64_t pad_top = 0;
  int64_t pad_left = 0;
  int64_t block = 8;  // or 16

  int64_t tile_rows() const { return (dst_height + 1) / 2; }
  int64_t tile_columns() const { return (dst_width + 1) / 2; }
  int64_t tiles() const { return batch * tile_rows() * tile_columns(); }
  int64_t weights() const { return src_channels * dst_channels; }
};

constexpr int64_t kWinogradPoints = 36;
// Tiles that are worked on together, so that they stay in the L2 cache.
constexpr int64_t kWinogradTiles = 12;

// Floats of the memory below, each aligned to 64 bytes.
int64_t WinogradScratchFloats(const Winograd5x5Shape& shape);
// The size of transformed weights: [points, src_channels, dst_channels].
int64_t WinogradWeightsFloats(const Winograd5x5Shape& shape);
// The size of the sums: of transformed weights, then of the biases.
int64_t WinogradSumsFloats(const Winograd5x5Shape& shape);

// Which convolution the weights [O, I, 5, 5] are for: forward of I channels, or
// the backward of data, which is one of O channels with the window turned.
enum class WinogradPass { kForward, kBackwardData };

// `shape` is that of the convolution which the pass is.
void WinogradTransformWeights(const Winograd5x5Shape& shape, WinogradPass pass,
                              const float* weights, float* transformed);

// dst of the tiles [begin, end): begin is a multiple of kWinogradTiles. `bias`
// [dst_channels] may be null. With `relu`, max(0, .) of it.
void WinogradConvolve(const Winograd5x5Shape& shape, int64_t begin, int64_t end,
                      const float* src, const float* transformed,
                      const float* bias, bool relu, float* scratch, float* dst);

// Sets `sums` to what the tiles [begin, end) add to the gradients of weights
// and biases, the weights' at the points.
void WinogradSumGradients(const Winograd5x5Shape& shape, int64_t begin,
                          int64_t end, const float* src, const float* diff_dst,
                          float* scratch, float* sums);

// diff_weights [O, I, 5, 5] from the sum over all tiles.
void WinogradFinishGradient(const Winograd5x5Shape& shape, const float* sums,
                            float* diff_weights);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_WINOGRAD5X5_KERNEL_H_
