#ifndef WORKER_BACKEND_CPU_ONE_CHANNEL_KERNEL_H_
#define WORKER_BACKEND_CPU_ONE_CHANNEL_KERNEL_H_

#include <cstdint>

namespace muster {

// The gradient of the weights of a convolution of one channel, as the first one
// of grey images is, with a 5x5 window and stride 1, for machines without
// AVX-512: there oneDNN's own takes 3.5 times as long, a tenth of a step of
// mnist_cnn (//tests/benchmark:step_benchmark).
//
// src lies in [batch, src_height, src_width], diff_dst in [batch, channels / 8,
// dst_height, dst_width, 8]: oneDNN's nChw8c. The instruction set is chosen at
// run time. Thread-safe.
struct OneChannelShape {
  int64_t channels = 0;  // of dst; a multiple of kOneChannelBlock
  int64_t src_height = 0;
  int64_t src_width = 0;
  int64_t dst_height = 0;
  int64_t dst_width = 0;
  int64_t pad_top = 0;
  int64_t pad_left = 0;
};

constexpr int64_t kOneChannelBlock = 8;
constexpr int64_t kOneChannelWindow = 5;
constexpr int64_t kOneChannelTaps = kOneChannelWindow * kOneChannelWindow;

// Floats of the memory below.
int64_t OneChannelScratchFloats(const OneChannelShape& shape);
// The gradients of the weights, [taps, channels], then those of the biases.
int64_t OneChannelSumsFloats(const OneChannelShape& shape);

// Sets `sums` to what the images [begin, end) add.
void SumOneChannelGradients(const OneChannelShape& shape, int64_t begin,
                            int64_t end, const float* src,
                            const float* diff_dst, float* scratch, float* sums);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_ONE_CHANNEL_KERNEL_H_
