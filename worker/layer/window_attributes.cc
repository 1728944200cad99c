#include "worker/layer/window_attributes.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// Larger ones would be mistakes, and sums of them must not overflow.
constexpr int64_t kMaxExtent = 1 << 20;

// One or two ints: rows and columns.
absl::Status ReadPair(absl::string_view name, absl::Span<const int64_t> values,
                      int64_t* rows, int64_t* columns) {
  if (values.empty() || values.size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", name, "' needs one or two integers, found ",
                     values.size()));
  }
  *rows = values.front();
  *columns = values.back();
  return absl::OkStatus();
}

absl::Status ReadPads(absl::Span<const int64_t> pads, WindowDesc* window) {
  switch (pads.size()) {
    case 1:
      window->pad_top = window->pad_bottom = pads[0];
      window->pad_left = window->pad_right = pads[0];
      return absl::OkStatus();
    case 2:
      window->pad_top = window->pad_bottom = pads[0];
      window->pad_left = window->pad_right = pads[1];
      return absl::OkStatus();
    case 4:
      window->pad_top = pads[0];
      window->pad_bottom = pads[1];
      window->pad_left = pads[2];
      window->pad_right = pads[3];
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "attribute 'pads' needs [all], [rows, columns] or [top, bottom, "
          "left, right], found ",
          pads.size(), " integers"));
  }
}

void PadSame(int64_t size, int64_t kernel, int64_t stride, int64_t* before,
             int64_t* after) {
  const int64_t output = (size + stride - 1) / stride;
  const int64_t total =
      std::max<int64_t>((output - 1) * stride + kernel - size, 0);
  *before = total / 2;
  *after = total - *before;
}

absl::Status ReadPadding(const Attributes& attributes, const Shape& input,
                         WindowDesc* window) {
  const absl::Span<const int64_t> pads = attributes.Ints("pads");
  const bool same = attributes.String("padding") == "same";
  if (!pads.empty()) {
    if (!same) return ReadPads(pads, window);
    return absl::InvalidArgumentError(
        "attribute 'pads' contradicts padding 'same'; give one of them");
  }
  if (!same) return absl::OkStatus();
  PadSame(input.dim(1), window->kernel_h, window->stride_h, &window->pad_top,
          &window->pad_bottom);
  PadSame(input.dim(2), window->kernel_w, window->stride_w, &window->pad_left,
          &window->pad_right);
  return absl::OkStatus();
}

}  // namespace

std::vector<AttrDef> WindowAttributes(WindowUse use) {
  const bool pooling = use == WindowUse::kPooling;
  AttrDef kernel = IntsAttr("kernel", "rows and columns of the window")
                       .AtLeast(1)
                       .AtMost(kMaxExtent);
  if (pooling) kernel = kernel.Default(std::vector<int64_t>{2});
  return {
      kernel,
      IntsAttr("stride", pooling ? "rows and columns between windows; [] is "
                                   "the kernel"
                                 : "rows and columns between windows")
          .AtLeast(1)
          .AtMost(kMaxExtent)
          .Default(pooling ? std::vector<int64_t>{} : std::vector<int64_t>{1}),
      StringAttr("padding", "of the borders, unless pads is given")
          .OneOf({"same", "valid"})
          .Default(std::string("valid")),
      IntsAttr("pads", "[all], [rows, columns] or [top, bottom, left, right]")
          .AtLeast(0)
          .AtMost(kMaxExtent)
          .Default(std::vector<int64_t>{}),
  };
}

absl::StatusOr<WindowDesc> MakeWindow(const Attributes& attributes,
                                      WindowUse use, const Shape& input) {
  if (input.rank() != 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        "needs an input [channels, height, width], found ", input.ToString()));
  }
  WindowDesc window;
  RETURN_IF_ERROR(ReadPair("kernel", attributes.Ints("kernel"),
                           &window.kernel_h, &window.kernel_w));
  const bool own_stride = !attributes.Ints("stride").empty();
  RETURN_IF_ERROR(ReadPair("stride",
                           attributes.Ints(own_stride ? "stride" : "kernel"),
                           &window.stride_h, &window.stride_w));
  RETURN_IF_ERROR(ReadPadding(attributes, input, &window));
  RETURN_IF_ERROR(window.Validate(input.dim(1), input.dim(2)));
  const bool pads_reach_out =
      std::max(window.pad_top, window.pad_bottom) >= window.kernel_h ||
      std::max(window.pad_left, window.pad_right) >= window.kernel_w;
  if (use == WindowUse::kPooling && pads_reach_out) {
    return absl::InvalidArgumentError(
        "attribute 'pads' must be smaller than the kernel, or windows would "
        "see nothing but padding");
  }
  return window;
}

}  // namespace muster
