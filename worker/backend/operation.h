// Operations to be computed: plain descriptions, without memory, layout or
// device. Each has a name for messages, says how its gradient is made, and of
// what shapes the layouts are that its primitives follow. Every Validate
// returns InvalidArgument that names the field; a Backend calls it before it
// makes a primitive.
//
// Operands: left of `->` is read, right of it is written. kWorkspace and
// kScratch may be on either side of any; take what the primitive states.
// `diff_*` are gradients; no primitive adds to them but the L2 penalty (use
// add).
#ifndef WORKER_BACKEND_OPERATION_H_
#define WORKER_BACKEND_OPERATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/tensor/shape.h"

namespace muster {

// Training keeps in kWorkspace what backward needs; inference does not.
enum class Phase { kTraining, kInference };

// The primitives that make an operation's gradient.
enum class Gradient {
  kNone,    // it is diff_dst itself, or forward makes it
  kWhole,   // one: Pass::kBackward
  kByPart,  // two: Pass::kBackwardWeights and Pass::kBackwardData
};

// The shapes of the layouts that Backend::Create is given for an operation;
// nullopt: any. Empty for one that chooses its layouts.
using LayoutShapes = std::vector<std::optional<Shape>>;

// A window that slides over H and W. Size of the result:
//   (H + pad_top + pad_bottom - kernel_h) / stride_h + 1, rounded down.
struct WindowDesc {
  int64_t kernel_h = 1;
  int64_t kernel_w = 1;
  int64_t stride_h = 1;
  int64_t stride_w = 1;
  int64_t pad_top = 0;
  int64_t pad_bottom = 0;
  int64_t pad_left = 0;
  int64_t pad_right = 0;

  int64_t dst_h(int64_t height) const {
    return (height + pad_top + pad_bottom - kernel_h) / stride_h + 1;
  }
  int64_t dst_w(int64_t width) const {
    return (width + pad_left + pad_right - kernel_w) / stride_w + 1;
  }
  // Kernel and stride positive, no pad negative, and at least one position.
  absl::Status Validate(int64_t height, int64_t width) const;
};

// dst[n, o, y, x] = bias[o] + sum over i, ky, kx of weights[o, i, ky, kx]
//   * src[n, i, y * stride_h + ky - pad_top, x * stride_w + kx - pad_left],
// zero outside src: a cross-correlation, as PyTorch's Conv2d and
// TensorFlow's conv2d. With `groups` G channels are cut into G runs, and the
// g'th run of dst's sees the g'th of src's alone: i is one of I / G channels,
// and src's is o / (O / G) * (I / G) + i.
//   forward: src, weights, bias -> dst
//   backward data: diff_dst, weights -> diff_src
//   backward weights: src, diff_dst -> diff_weights, diff_bias
struct Conv2dDesc {
  static constexpr char kName[] = "conv2d";
  static constexpr Gradient kGradient = Gradient::kByPart;

  int64_t batch = 1;
  int64_t src_channels = 1;
  int64_t dst_channels = 1;
  int64_t height = 1;  // of src
  int64_t width = 1;
  WindowDesc window;
  bool has_bias = true;
  // Forward ends with max(0, .). The backward primitives ignore this: run the
  // backward of the activation over diff_dst first.
  bool relu = false;
  // Divides both src_channels and dst_channels.
  int64_t groups = 1;

  absl::Status Validate() const;
  LayoutShapes layout_shapes() const { return {}; }
  Shape src_shape() const { return {batch, src_channels, height, width}; }
  // [O, I / groups, KH, KW]. REQUIRES: groups is not 0.
  Shape weights_shape() const {
    return {dst_channels, src_channels / groups, window.kernel_h,
            window.kernel_w};
  }
  Shape bias_shape() const { return {dst_channels}; }
  Shape dst_shape() const {
    return {batch, dst_channels, window.dst_h(height), window.dst_w(width)};
  }
};

// dst = src * transpose(weights) + bias: PyTorch's Linear.
// Operands as the convolution's.
struct DenseDesc {
  static constexpr char kName[] = "dense";
  static constexpr Gradient kGradient = Gradient::kByPart;

  int64_t batch = 1;
  int64_t src_features = 1;
  int64_t dst_features = 1;
  bool has_bias = true;
  bool relu = false;  // as in Conv2dDesc

  absl::Status Validate() const;
  LayoutShapes layout_shapes() const { return {}; }
  Shape src_shape() const { return {batch, src_features}; }
  Shape weights_shape() const { return {dst_features, src_features}; }
  Shape bias_shape() const { return {dst_features}; }
  Shape dst_shape() const { return {batch, dst_features}; }
};

// Element by element: max(0, x), 1 / (1 + exp(-x)), tanh(x), and leaky ReLU's
// x > 0 ? x : slope * x. Each derivative is a function of dst alone, so src
// need not be kept:
//   relu: dst > 0 (so 0 at x = 0), sigmoid: dst (1 - dst), tanh: 1 - dst^2,
//   leaky ReLU: dst > 0 ? 1 : slope, since a positive slope keeps the sign.
//   forward: src -> dst, in place
//   backward: dst, diff_dst -> diff_src, in place
// The layout: src's, which is dst's.
enum class ActivationKind { kRelu, kSigmoid, kTanh, kLeakyRelu };
struct ActivationDesc {
  static constexpr char kName[] = "activation";
  static constexpr Gradient kGradient = Gradient::kWhole;

  ActivationKind kind = ActivationKind::kRelu;
  // kLeakyRelu's alone, in (0, 1].
  double slope = 0.01;

  absl::Status Validate() const;
  LayoutShapes layout_shapes() const { return {std::nullopt}; }
};

// Every pad must be smaller than the kernel.
// Max: padding counts as minus infinity; a tie goes to the first position in
// row-major order. Average: padding is left out of sum and count
// (TensorFlow's avg_pool; PyTorch's with count_include_pad=False). A global
// pool has the kernel of the input's size.
//   forward: src -> dst
//   backward: diff_dst (dst too, if it is stated) -> diff_src
// The layout: src's.
enum class PoolKind { kMax, kAverage };
struct PoolDesc {
  static constexpr char kName[] = "pool";
  static constexpr Gradient kGradient = Gradient::kWhole;

  PoolKind kind = PoolKind::kMax;
  int64_t batch = 1;
  int64_t channels = 1;
  int64_t height = 1;  // of src
  int64_t width = 1;
  WindowDesc window;
  // Max only: dst = pool(relu(src)), and backward gives the gradient of both.
  // Fast for 2x2 windows with stride 2; right for all.
  bool relu_before = false;
  Phase phase = Phase::kTraining;

  absl::Status Validate() const;
  LayoutShapes layout_shapes() const { return {src_shape()}; }
  Shape src_shape() const { return {batch, channels, height, width}; }
  Shape dst_shape() const {
    return {batch, channels, window.dst_h(height), window.dst_w(width)};
  }
};

// dst = keep ? src / (1 - rate) : 0, each element kept with probability
// 1 - rate by (seed, its row-major index) alone: dropout_mask.h. For training;
// at inference leave the operation out.
//   forward: src -> dst with Operands::seed, in place
//   backward: diff_dst -> diff_src with the mask in the workspace, in place
// The layout: src's.
struct DropoutDesc {
  static constexpr char kName[] = "dropout";
  static constexpr Gradient kGradient = Gradient::kWhole;

  double rate = 0.5;  // in [0, 1)
  Shape shape;

  absl::Status Validate() const;
  LayoutShapes layout_shapes() const { return {shape}; }
};

// dst = weights * (src - mean) / sqrt(variance + epsilon) + bias by channel.
// Training: mean and variance of this batch over N, H, W, the variance with
// divisor m = N * H * W, and both are results (PyTorch feeds its running
// variance with divisor m - 1: scale by m / (m - 1) for that). Inference: mean
// and variance are given.
//   forward in training: src, weights, bias -> dst, mean, variance
//   forward in inference: src, weights, bias, mean, variance -> dst
//   backward, in training only:
//     src, weights, mean, variance, diff_dst -> diff_src, diff_weights,
//     diff_bias
// The layout: src's.
struct BatchNormDesc {
  static constexpr char kName[] = "batch norm";
  static constexpr Gradient kGradient = Gradient::kWhole;

  int64_t batch = 1;
  int64_t channels = 1;
  int64_t height = 1;
  int64_t width = 1;
  double epsilon = 1e-5;
  Phase phase = Phase::kTraining;

  absl::Status Validate() const;
  LayoutShapes layout_shapes() const { return {src_shape()}; }
  Shape src_shape() const { return {batch, channels, height, width}; }
  Shape channel_shape() const { return {channels}; }
};

// dst = weights * (src - mean) / sqrt(variance + epsilon) + bias by feature,
// with the mean and the variance (divisor: features) of each row: layer
// normalization (Ba et al., 2016), the same in training and at inference.
//   forward: src, weights, bias -> dst; in training also mean, variance [N]
//   backward: src, weights, mean, variance, diff_dst -> diff_src, diff_weights,
//     diff_bias
// The layout: src's.
struct LayerNormDesc {
  static constexpr char kName[] = "layer norm";
  static constexpr Gradient kGradient = Gradient::kWhole;

  int64_t batch = 1;
  int64_t features = 1;
  double epsilon = 1e-5;
  Phase phase = Phase::kTraining;

  absl::Status Validate() const;
  LayoutShapes layout_shapes() const { return {src_shape()}; }
  Shape src_shape() const { return {batch, features}; }
  Shape weights_shape() const { return {features}; }
  Shape row_shape() const { return {batch}; }
};

// dst = sum of n sources of one shape: the layer, and the sum of gradients
// where an output has several readers.
//   forward: src[0..n) -> dst, all in the layout of the first, in place
// The gradient of each source is diff_dst itself. The layouts: the sources'.
struct AddDesc {
  static constexpr char kName[] = "add";
  static constexpr Gradient kGradient = Gradient::kNone;

  int num_srcs = 2;
  Shape shape;

  absl::Status Validate() const;
  LayoutShapes layout_shapes() const { return LayoutShapes(num_srcs, shape); }
};

// Joins along dimension 1 (channels or features); the others are equal.
//   forward: src[0..n) -> dst
//   backward: diff_dst -> diff_src[0..n)
// The layouts: the sources'.
struct ConcatDesc {
  static constexpr char kName[] = "concat";
  static constexpr Gradient kGradient = Gradient::kWhole;

  std::vector<Shape> srcs;  // all of rank 4, or all of rank 2

  absl::Status Validate() const;
  LayoutShapes layout_shapes() const {
    return LayoutShapes(srcs.begin(), srcs.end());
  }
  Shape dst_shape() const;
};

// With the target t = (1 - label_smoothing) onehot(label) + label_smoothing /
// classes (Szegedy et al., Rethinking the Inception Architecture, 2016):
// loss = mean over the first `rows` rows of -sum over k of t[k] *
//   log(softmax(src)[k]);
// correct = rows whose largest src (the first of equals) is at the label;
// diff_src = (softmax(src) - t) / rows, zero beyond `rows`.
//   forward: src, labels, row_weights -> loss, correct, diff_src with
//     Operands::rows
// Labels are int32 [N], loss is float64 [1], correct is int64 [1]; with
// `weighted` row_weights, float32 [N], are factors of each row's loss and
// diff_src, whose mean is still over `rows`. Executing
// fails with InvalidArgument if `rows` is not in [1, N] or a label not in
// [0, classes).
struct SoftmaxCrossEntropyDesc {
  static constexpr char kName[] = "softmax cross-entropy";
  static constexpr Gradient kGradient = Gradient::kNone;
  static constexpr bool kIsLoss = true;

  int64_t batch = 1;
  int64_t classes = 2;
  double label_smoothing = 0;      // in [0, 1)
  Phase phase = Phase::kTraining;  // inference: no diff_src
  bool weighted = false;

  absl::Status Validate() const;
  LayoutShapes layout_shapes() const { return {}; }
  Shape src_shape() const { return {batch, classes}; }
};

// Losses that compare each output x with a target z, as means over the first
// `rows` rows and all outputs:
//   kSigmoidCrossEntropy: max(x, 0) - x z + log(1 + exp(-|x|)), which is
//     -z log(s) - (1 - z) log(1 - s) with s = 1 / (1 + exp(-x)) (PyTorch's
//     BCEWithLogitsLoss); diff_src = (s - z) / (rows outputs)
//   kSquaredError: (x - z)^2; diff_src = 2 (x - z) / (rows outputs)
// diff_src is zero beyond `rows`. For kSigmoidCrossEntropy alone: correct =
// rows all of whose outputs are on their target's side: x > 0 where z > 1/2.
//   forward: src, labels, row_weights -> loss, correct, diff_src with
//     Operands::rows
// Labels are float32 [N, outputs], loss is float64 [1], correct is int64 [1];
// `weighted` as in SoftmaxCrossEntropyDesc.
// Executing fails with InvalidArgument if `rows` is not in [1, N].
enum class TargetLossKind { kSigmoidCrossEntropy, kSquaredError };
struct TargetLossDesc {
  static constexpr char kName[] = "target loss";
  static constexpr Gradient kGradient = Gradient::kNone;
  static constexpr bool kIsLoss = true;

  TargetLossKind kind = TargetLossKind::kSquaredError;
  int64_t batch = 1;
  int64_t outputs = 1;
  Phase phase = Phase::kTraining;  // inference: no diff_src
  bool weighted = false;

  absl::Status Validate() const;
  LayoutShapes layout_shapes() const { return {}; }
  bool counts_correct() const {
    return kind == TargetLossKind::kSigmoidCrossEntropy;
  }
  Shape src_shape() const { return {batch, outputs}; }
};

// loss += scale * sum(weights^2) / 2 and, in training, diff_weights +=
// scale * weights (scale * tf.nn.l2_loss; PyTorch's weight_decay in SGD).
//   forward: weights, loss, diff_weights -> loss, diff_weights
// It adds to both, and runs after they were written. The layout: that of
// weights and diff_weights.
struct L2PenaltyDesc {
  static constexpr char kName[] = "L2 penalty";
  static constexpr Gradient kGradient = Gradient::kNone;

  double scale = 0;
  Shape shape;
  Phase phase = Phase::kTraining;  // inference: no diff_weights

  absl::Status Validate() const;
  LayoutShapes layout_shapes() const { return {shape}; }
};

// dst = src, from one layout to another.
//   forward: src -> dst
// The layouts: src's and dst's, each row-major or stated by a primitive of the
// backend.
struct ReorderDesc {
  static constexpr char kName[] = "reorder";
  static constexpr Gradient kGradient = Gradient::kNone;

  Shape shape;

  absl::Status Validate() const { return absl::OkStatus(); }
  LayoutShapes layout_shapes() const { return {shape, shape}; }
};

// Any operation, and which of its primitives is meant.
using Operation = std::variant<Conv2dDesc, DenseDesc, ActivationDesc, PoolDesc,
                               DropoutDesc, BatchNormDesc, LayerNormDesc,
                               AddDesc, ConcatDesc, SoftmaxCrossEntropyDesc,
                               TargetLossDesc, L2PenaltyDesc, ReorderDesc>;
enum class Pass { kForward, kBackward, kBackwardData, kBackwardWeights };

// "conv2d backward data"
std::string PrimitiveName(const Operation& operation, Pass pass);

}  // namespace muster

#endif  // WORKER_BACKEND_OPERATION_H_
