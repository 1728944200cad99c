#ifndef COMMON_CHECKPOINT_FLOAT_TENSOR_H_
#define COMMON_CHECKPOINT_FLOAT_TENSOR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/checkpoint/safetensors_reader.h"

namespace muster {

// May a tensor of this dtype of the format be read as float32? F32 as it is,
// F16 and BF16 exactly, F64 rounded to nearest.
bool IsFloatDtype(absl::string_view format_dtype);

// Reads a whole tensor as float32, row-major, in pieces of at most 1 MiB.
// `dst` has its number of elements. Errors: NotFound for an unknown tensor;
// InvalidArgument for another dtype, another size of dst, or a value that is
// not finite or too large for float32, with its index; the file's.
absl::Status ReadFloats(const SafetensorsReader& reader, absl::string_view name,
                        absl::Span<float> dst);

}  // namespace muster

#endif  // COMMON_CHECKPOINT_FLOAT_TENSOR_H_
