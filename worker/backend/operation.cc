#include "worker/backend/operation.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

struct Field {
  absl::string_view name;
  int64_t value;
};

absl::Status CheckPositive(absl::string_view operation,
                           std::initializer_list<Field> fields) {
  for (const Field& field : fields) {
    if (field.value > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        operation, ": ", field.name, " must be positive, is ", field.value));
  }
  return absl::OkStatus();
}

// Checks that a shape of these dimensions is one that memory can hold.
absl::Status CheckShape(absl::string_view operation,
                        std::initializer_list<int64_t> dims) {
  return Annotate(
      Shape::Create(absl::Span<const int64_t>(dims.begin(), dims.size()))
          .status(),
      operation);
}

absl::Status CheckNotEmpty(absl::string_view operation, const Shape& shape) {
  if (shape.num_elements() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      operation, ": the shape must have elements, is ", shape.ToString()));
}

// Sizes of one side of a window.
struct Side {
  absl::string_view name;
  int64_t size, kernel, stride, pad_before, pad_after;
};

absl::Status CheckSide(const Side& side) {
  RETURN_IF_ERROR(CheckPositive(
      side.name,
      {{"size", side.size}, {"kernel", side.kernel}, {"stride", side.stride}}));
  constexpr int64_t kLimit = int64_t{1} << 40;
  for (const int64_t value :
       {side.size, side.kernel, side.stride, side.pad_before, side.pad_after}) {
    if (value <= kLimit) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(side.name, ": ", value, " is more than ", kLimit));
  }
  for (const int64_t pad : {side.pad_before, side.pad_after}) {
    if (pad >= 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(side.name, ": padding must not be negative, is ", pad));
  }
  if (side.size + side.pad_before + side.pad_after < side.kernel) {
    return absl::InvalidArgumentError(absl::StrCat(
        side.name, ": a kernel of ", side.kernel, " does not fit on ",
        side.size, " with padding ", side.pad_before, " and ", side.pad_after));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WindowDesc::Validate(int64_t height, int64_t width) const {
  RETURN_IF_ERROR(CheckSide(
      {"window height", height, kernel_h, stride_h, pad_top, pad_bottom}));
  return CheckSide(
      {"window width", width, kernel_w, stride_w, pad_left, pad_right});
}

absl::Status Conv2dDesc::Validate() const {
  RETURN_IF_ERROR(CheckPositive("conv2d", {{"batch", batch},
                                           {"src_channels", src_channels},
                                           {"dst_channels", dst_channels},
                                           {"groups", groups}}));
  if (src_channels % groups != 0 || dst_channels % groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("conv2d: groups must divide the channels, is ", groups,
                     " of ", src_channels, " in and ", dst_channels, " out"));
  }
  RETURN_IF_ERROR(Annotate(window.Validate(height, width), "conv2d"));
  RETURN_IF_ERROR(
      CheckShape("conv2d src", {batch, src_channels, height, width}));
  RETURN_IF_ERROR(CheckShape(
      "conv2d weights",
      {dst_channels, src_channels / groups, window.kernel_h, window.kernel_w}));
  return CheckShape("conv2d dst", {batch, dst_channels, window.dst_h(height),
                                   window.dst_w(width)});
}

absl::Status DenseDesc::Validate() const {
  RETURN_IF_ERROR(CheckPositive("dense", {{"batch", batch},
                                          {"src_features", src_features},
                                          {"dst_features", dst_features}}));
  RETURN_IF_ERROR(CheckShape("dense src", {batch, src_features}));
  RETURN_IF_ERROR(CheckShape("dense weights", {dst_features, src_features}));
  return CheckShape("dense dst", {batch, dst_features});
}

absl::Status ActivationDesc::Validate() const {
  if (kind != ActivationKind::kLeakyRelu || (slope > 0 && slope <= 1)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("leaky ReLU: slope must be in (0, 1], is ", slope));
}

absl::Status PoolDesc::Validate() const {
  RETURN_IF_ERROR(
      CheckPositive("pool", {{"batch", batch}, {"channels", channels}}));
  RETURN_IF_ERROR(Annotate(window.Validate(height, width), "pool"));
  // Else a window could lie in padding alone, and have no maximum.
  const WindowDesc& w = window;
  if (std::max(w.pad_top, w.pad_bottom) >= w.kernel_h ||
      std::max(w.pad_left, w.pad_right) >= w.kernel_w) {
    return absl::InvalidArgumentError(
        "pool: padding must be smaller than the kernel");
  }
  if (relu_before && kind != PoolKind::kMax) {
    return absl::InvalidArgumentError(
        "pool: relu_before is for max pools; this one is an average");
  }
  RETURN_IF_ERROR(CheckShape("pool src", {batch, channels, height, width}));
  return CheckShape(
      "pool dst", {batch, channels, window.dst_h(height), window.dst_w(width)});
}

absl::Status DropoutDesc::Validate() const {
  if (!(rate >= 0 && rate < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dropout: rate must be in [0, 1), is ", rate));
  }
  return CheckNotEmpty("dropout", shape);
}

absl::Status BatchNormDesc::Validate() const {
  RETURN_IF_ERROR(CheckPositive("batch norm", {{"batch", batch},
                                               {"channels", channels},
                                               {"height", height},
                                               {"width", width}}));
  if (!(epsilon > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch norm: epsilon must be positive, is ", epsilon));
  }
  return CheckShape("batch norm src", {batch, channels, height, width});
}

absl::Status LayerNormDesc::Validate() const {
  RETURN_IF_ERROR(
      CheckPositive("layer norm", {{"batch", batch}, {"features", features}}));
  if (!(epsilon > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("layer norm: epsilon must be positive, is ", epsilon));
  }
  return CheckShape("layer norm src", {batch, features});
}

absl::Status AddDesc::Validate() const {
  RETURN_IF_ERROR(CheckPositive("add", {{"num_srcs", num_srcs}}));
  return CheckNotEmpty("add", shape);
}

absl::Status ConcatDesc::Validate() const {
  if (srcs.empty()) {
    return absl::InvalidArgumentError("concat: needs at least one source");
  }
  int64_t channels = 0;
  for (const Shape& src : srcs) {
    RETURN_IF_ERROR(CheckNotEmpty("concat", src));
    bool fits =
        src.rank() == srcs[0].rank() && (src.rank() == 2 || src.rank() == 4);
    for (int i = 0; fits && i < src.rank(); ++i) {
      fits = i == 1 || src.dim(i) == srcs[0].dim(i);
    }
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat(
          "concat: sources must be [N, C, H, W] or [N, I] and differ only in "
          "dimension 1; found ",
          srcs[0].ToString(), " and ", src.ToString()));
    }
    channels += src.dim(1);
  }
  if (srcs[0].rank() == 2) {
    return CheckShape("concat dst", {srcs[0].dim(0), channels});
  }
  return CheckShape("concat dst",
                    {srcs[0].dim(0), channels, srcs[0].dim(2), srcs[0].dim(3)});
}

Shape ConcatDesc::dst_shape() const {
  int64_t channels = 0;
  for (const Shape& src : srcs) channels += src.dim(1);
  if (srcs[0].rank() == 2) return {srcs[0].dim(0), channels};
  return {srcs[0].dim(0), channels, srcs[0].dim(2), srcs[0].dim(3)};
}

absl::Status SoftmaxCrossEntropyDesc::Validate() const {
  RETURN_IF_ERROR(CheckPositive("softmax cross-entropy",
                                {{"batch", batch}, {"classes", classes}}));
  if (!(label_smoothing >= 0 && label_smoothing < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "softmax cross-entropy: label_smoothing must be in [0, 1), is ",
        label_smoothing));
  }
  return CheckShape("softmax cross-entropy src", {batch, classes});
}

absl::Status TargetLossDesc::Validate() const {
  RETURN_IF_ERROR(
      CheckPositive("target loss", {{"batch", batch}, {"outputs", outputs}}));
  return CheckShape("target loss src", {batch, outputs});
}

absl::Status L2PenaltyDesc::Validate() const {
  if (!(scale >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("L2 penalty: scale must not be negative, is ", scale));
  }
  return CheckNotEmpty("L2 penalty", shape);
}

std::string PrimitiveName(const Operation& operation, Pass pass) {
  static constexpr const char* kPasses[] = {
      "forward", "backward", "backward data", "backward weights"};
  return absl::StrCat(
      std::visit([](const auto& desc) { return desc.kName; }, operation), " ",
      kPasses[static_cast<int>(pass)]);
}

}  // namespace muster
