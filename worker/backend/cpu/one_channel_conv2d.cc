#include "worker/backend/cpu/one_channel_conv2d.h"

#include <algorithm>
#include <memory>
#include <string>

#include "worker/backend/cpu/cpu_threads.h"
#include "worker/backend/cpu/dnnl_layout.h"
#include "worker/backend/cpu/one_channel_kernel.h"
#include "worker/backend/cpu/vector_kernels.h"

namespace muster {
namespace {

OneChannelShape ShapeOf(const Conv2dDesc& desc) {
  return {desc.dst_channels,
          desc.height,
          desc.width,
          desc.window.dst_h(desc.height),
          desc.window.dst_w(desc.width),
          desc.window.pad_top,
          desc.window.pad_left};
}

MemoryLayout RowMajor(const Shape& shape) {
  return MemoryLayout::RowMajor(FLOAT32, shape);
}

// Scratch: for each thread its sums and the kernel's.
class OneChannelBackwardWeights : public Primitive {
 public:
  OneChannelBackwardWeights(const CpuContext& context, const Conv2dDesc& desc)
      : threads_(context.threads),
        batch_(desc.batch),
        has_bias_(desc.has_bias),
        shape_(ShapeOf(desc)),
        sums_(OneChannelSumsFloats(shape_)),
        scratch_of_thread_(sums_ + OneChannelScratchFloats(shape_)) {
    Take(Operand::kSrc, RowMajor(desc.src_shape()));
    Take(Operand::kDiffDst,
         ChannelBlockedLayout(desc.dst_shape(), kOneChannelBlock));
    Take(Operand::kDiffWeights, RowMajor(desc.weights_shape()));
    if (has_bias_) Take(Operand::kDiffBias, RowMajor(desc.bias_shape()));
    Take(Operand::kScratch, BytesLayout(threads_ * scratch_of_thread_ *
                                        static_cast<int64_t>(sizeof(float))));
  }

  std::string description() const override { return "own one-channel 5x5"; }

 private:
  absl::Status Run(const Operands& operands) override {
    float* const sums = operands.As<float>(Operand::kScratch);
    ForEachThread(
        threads_, batch_, [&](int64_t thread, int64_t begin, int64_t end) {
          float* const own = sums + thread * scratch_of_thread_;
          SumOneChannelGradients(
              shape_, begin, end, operands.As<const float>(Operand::kSrc),
              operands.As<const float>(Operand::kDiffDst), own + sums_, own);
        });
    for (int thread = 1; thread < threads_; ++thread) {
      AddVectors(sums, sums + thread * scratch_of_thread_, sums, sums_);
    }
    WriteWeights(sums, operands.As<float>(Operand::kDiffWeights));
    if (has_bias_) {
      std::copy_n(sums + kOneChannelTaps * shape_.channels, shape_.channels,
                  operands.As<float>(Operand::kDiffBias));
    }
    return absl::OkStatus();
  }

  void WriteWeights(const float* sums, float* diff_weights) const {
    for (int64_t channel = 0; channel < shape_.channels; ++channel) {
      for (int64_t tap = 0; tap < kOneChannelTaps; ++tap) {
        *diff_weights++ = sums[tap * shape_.channels + channel];
      }
    }
  }

  const int threads_;
  const int64_t batch_;
  const bool has_bias_;
  const OneChannelShape shape_;
  // Floats of one thread's sums, and of all its scratch.
  const int64_t sums_;
  const int64_t scratch_of_thread_;
};

}  // namespace

bool IsForOneChannel(const Conv2dDesc& desc) {
  const WindowDesc& w = desc.window;
  return desc.src_channels == 1 && desc.dst_channels % kOneChannelBlock == 0 &&
         w.kernel_h == kOneChannelWindow && w.kernel_w == kOneChannelWindow &&
         w.stride_h == 1 && w.stride_w == 1 && w.pad_top < kOneChannelWindow &&
         w.pad_left < kOneChannelWindow;
}

CpuPrimitive MakeOneChannelBackwardWeights(const CpuContext& context,
                                           const Conv2dDesc& desc) {
  return std::make_unique<OneChannelBackwardWeights>(context, desc);
}

}  // namespace muster
