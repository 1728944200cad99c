#include "worker/backend/cpu/winograd_conv2d.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "worker/backend/cpu/cpu_threads.h"
#include "worker/backend/cpu/dnnl_layout.h"
#include "worker/backend/cpu/vector_kernels.h"
#include "worker/backend/cpu/winograd5x5_kernel.h"

namespace muster {
namespace {

constexpr char kDescription[] = "own Winograd F(2x2, 5x5)";
constexpr int64_t kWindow = 5;
// Floats in a cache line: each thread's scratch begins at one.
constexpr int64_t kLine = 16;

// With how many tiles the kernel pays off, for weights of up to so many pairs
// of channels. The weights are transformed once in a pass (the gradient, back),
// which a tile saves about 2 % of; and 36 values a pair are read for each dozen
// of tiles, which from some 2 MB on, 128 x 128 pairs, do not come from the L2
// cache. The rows are what `bazel run //tests/benchmark:conv_benchmark`
// measured with one thread on two processors with AVX-512, an AMD EPYC and an
// Intel Xeon: 0.4 to 1.0 of oneDNN's time from these tiles on. On the Xeon it
// is 1.0 to 1.2 with 49 tiles of 32 x 64 pairs and 1.4 to 1.6 with 128 x 128;
// with 256 x 256 pairs and more it is 0.9 to 3.4, up to 392 tiles.
struct LeastTiles {
  int64_t most_pairs;
  int64_t tiles;
};
constexpr LeastTiles kLeastTiles[] = {{64 * 64, 96}, {128 * 128, 768}};

Winograd5x5Shape ShapeOf(const Conv2dDesc& desc, int64_t block) {
  return {desc.batch,
          desc.src_channels,
          desc.dst_channels,
          desc.height,
          desc.width,
          desc.window.dst_h(desc.height),
          desc.window.dst_w(desc.width),
          desc.window.pad_top,
          desc.window.pad_left,
          block};
}

// The gradient of src is the convolution of diff_dst, padded by what the window
// overlaps, with the turned window.
Winograd5x5Shape BackwardShape(const Conv2dDesc& desc, int64_t block) {
  const Winograd5x5Shape forward = ShapeOf(desc, block);
  return {desc.batch,
          desc.dst_channels,
          desc.src_channels,
          forward.dst_height,
          forward.dst_width,
          desc.height,
          desc.width,
          kWindow - 1 - desc.window.pad_top,
          kWindow - 1 - desc.window.pad_left,
          block};
}

MemoryLayout RowMajor(const Shape& shape) {
  return MemoryLayout::RowMajor(FLOAT32, shape);
}

MemoryLayout FloatsLayout(int64_t floats) {
  return BytesLayout(floats * static_cast<int64_t>(sizeof(float)));
}

int64_t WholeLines(int64_t floats) {
  return (floats + kLine - 1) / kLine * kLine;
}

// Divides the tiles among the threads in whole groups.
void ForTiles(
    int threads, const Winograd5x5Shape& shape,
    absl::FunctionRef<void(int64_t thread, int64_t begin, int64_t end)> body) {
  const int64_t groups = (shape.tiles() + kWinogradTiles - 1) / kWinogradTiles;
  ForEachThread(threads, groups,
                [&](int64_t thread, int64_t begin, int64_t end) {
                  body(thread, begin * kWinogradTiles,
                       std::min(end * kWinogradTiles, shape.tiles()));
                });
}

// Forward, or the gradient of src. Scratch: the transformed weights, then one
// of the kernel's for each thread.
class WinogradConvolution : public Primitive {
 public:
  struct Roles {
    WinogradPass pass;
    Operand src, dst;
    bool has_bias, relu;
  };

  WinogradConvolution(const CpuContext& context, const Conv2dDesc& desc,
                      const Winograd5x5Shape& shape, const Roles& roles)
      : threads_(context.threads), shape_(shape), roles_(roles) {
    Take(roles.src,
         ChannelBlockedLayout(Shape{shape.batch, shape.src_channels,
                                    shape.src_height, shape.src_width},
                              shape.block));
    Take(roles.dst,
         ChannelBlockedLayout(Shape{shape.batch, shape.dst_channels,
                                    shape.dst_height, shape.dst_width},
                              shape.block));
    Take(Operand::kWeights, RowMajor(desc.weights_shape()));
    if (roles.has_bias) Take(Operand::kBias, RowMajor(desc.bias_shape()));
    Take(Operand::kScratch,
         FloatsLayout(WinogradWeightsFloats(shape) +
                      threads_ * WholeLines(WinogradScratchFloats(shape))));
  }

  std::string description() const override { return kDescription; }

 private:
  absl::Status Run(const Operands& operands) override {
    float* const transformed = operands.As<float>(Operand::kScratch);
    float* const scratch = transformed + WinogradWeightsFloats(shape_);
    WinogradTransformWeights(shape_, roles_.pass,
                             operands.As<const float>(Operand::kWeights),
                             transformed);
    const float* const bias =
        roles_.has_bias ? operands.As<const float>(Operand::kBias) : nullptr;
    ForTiles(threads_, shape_, [&](int64_t thread, int64_t begin, int64_t end) {
      WinogradConvolve(
          shape_, begin, end, operands.As<const float>(roles_.src), transformed,
          bias, roles_.relu,
          scratch + thread * WholeLines(WinogradScratchFloats(shape_)),
          operands.As<float>(roles_.dst));
    });
    return absl::OkStatus();
  }

  const int threads_;
  const Winograd5x5Shape shape_;
  const Roles roles_;
};

// Scratch: for each thread its sums and the kernel's.
class WinogradBackwardWeights : public Primitive {
 public:
  WinogradBackwardWeights(const CpuContext& context, const Conv2dDesc& desc,
                          int64_t block)
      : threads_(context.threads),
        has_bias_(desc.has_bias),
        shape_(ShapeOf(desc, block)),
        sums_(WholeLines(WinogradSumsFloats(shape_))) {
    Take(Operand::kSrc, ChannelBlockedLayout(desc.src_shape(), block));
    Take(Operand::kDiffDst, ChannelBlockedLayout(desc.dst_shape(), block));
    Take(Operand::kDiffWeights, RowMajor(desc.weights_shape()));
    if (has_bias_) Take(Operand::kDiffBias, RowMajor(desc.bias_shape()));
    Take(Operand::kScratch, FloatsLayout(threads_ * scratch_of_thread()));
  }

  std::string description() const override { return kDescription; }

 private:
  int64_t scratch_of_thread() const {
    return sums_ + WholeLines(WinogradScratchFloats(shape_));
  }

  absl::Status Run(const Operands& operands) override {
    float* const scratch = operands.As<float>(Operand::kScratch);
    ForTiles(threads_, shape_, [&](int64_t thread, int64_t begin, int64_t end) {
      float* const own = scratch + thread * scratch_of_thread();
      WinogradSumGradients(
          shape_, begin, end, operands.As<const float>(Operand::kSrc),
          operands.As<const float>(Operand::kDiffDst), own + sums_, own);
    });
    for (int thread = 1; thread < threads_; ++thread) {
      AddVectors(scratch, scratch + thread * scratch_of_thread(), scratch,
                 WinogradSumsFloats(shape_));
    }
    WinogradFinishGradient(shape_, scratch,
                           operands.As<float>(Operand::kDiffWeights));
    if (has_bias_) {
      std::copy_n(scratch + WinogradWeightsFloats(shape_), shape_.dst_channels,
                  operands.As<float>(Operand::kDiffBias));
    }
    return absl::OkStatus();
  }

  const int threads_;
  const bool has_bias_;
  const Winograd5x5Shape shape_;
  // Floats of one thread's sums.
  const int64_t sums_;
};

bool PaysOff(const Winograd5x5Shape& shape) {
  for (const LeastTiles& row : kLeastTiles) {
    if (shape.weights() <= row.most_pairs) return shape.tiles() >= row.tiles;
  }
  return false;
}

}  // namespace

bool IsForWinograd(const Conv2dDesc& desc) {
  const WindowDesc& w = desc.window;
  const auto fits = [](int64_t kernel, int64_t stride, int64_t begin,
                       int64_t end) {
    return kernel == kWindow && stride == 1 && begin < kWindow && end < kWindow;
  };
  return fits(w.kernel_h, w.stride_h, w.pad_top, w.pad_bottom) &&
         fits(w.kernel_w, w.stride_w, w.pad_left, w.pad_right) &&
         desc.groups == 1 && desc.src_channels % 16 == 0 &&
         desc.dst_channels % 16 == 0 && PaysOff(ShapeOf(desc, /*block=*/8));
}

CpuPrimitive MakeWinogradForward(const CpuContext& context,
                                 const Conv2dDesc& desc, int64_t block) {
  return std::make_unique<WinogradConvolution>(
      context, desc, ShapeOf(desc, block),
      WinogradConvolution::Roles{WinogradPass::kForward, Operand::kSrc,
                                 Operand::kDst, desc.has_bias, desc.relu});
}

CpuPrimitive MakeWinogradBackwardData(const CpuContext& context,
                                      const Conv2dDesc& desc, int64_t block) {
  return std::make_unique<WinogradConvolution>(
      context, desc, BackwardShape(desc, block),
      WinogradConvolution::Roles{WinogradPass::kBackwardData, Operand::kDiffDst,
                                 Operand::kDiffSrc, /*has_bias=*/false,
                                 /*relu=*/false});
}

CpuPrimitive MakeWinogradBackwardWeights(const CpuContext& context,
                                         const Conv2dDesc& desc,
                                         int64_t block) {
  return std::make_unique<WinogradBackwardWeights>(context, desc, block);
}

}  // namespace muster
