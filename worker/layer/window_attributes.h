#ifndef WORKER_LAYER_WINDOW_ATTRIBUTES_H_
#define WORKER_LAYER_WINDOW_ATTRIBUTES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/config/attributes.h"
#include "common/tensor/shape.h"
#include "worker/backend/operation.h"

namespace muster {

// The attributes that MakeWindow reads: kernel, stride, padding, pads. Without
// a stride a convolution's is 1 and a pooling's is its kernel.
enum class WindowUse { kConvolution, kPooling };
std::vector<AttrDef> WindowAttributes(WindowUse use);

// The window that a convolution or a pooling moves over an input [C, H, W].
//   same   output size is ceil(size / stride); an odd row or column of padding
//          goes to the bottom and right, as in TensorFlow
//   valid  no padding
//   pads   [all], [rows, columns] or [top, bottom, left, right]
// Errors: InvalidArgument if the input has another rank or is smaller than the
// kernel, lists have wrong lengths, `pads` meets padding "same", or a pooling's
// padding is not smaller than its kernel.
absl::StatusOr<WindowDesc> MakeWindow(const Attributes& attributes,
                                      WindowUse use, const Shape& input);

}  // namespace muster

#endif  // WORKER_LAYER_WINDOW_ATTRIBUTES_H_
