#ifndef WORKER_INPUT_FILE_ROW_MAJOR_H_
#define WORKER_INPUT_FILE_ROW_MAJOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/input/file/file_bytes.h"

namespace muster {

// Reads a column-major array, in which elements that differ in the first index
// alone lie together, once from its beginning to its end, and returns it
// row-major. `values` are its elements, of 1, 2, 4 or 8 bytes each, as many as
// `shape` has. Errors, without the path: FileBytes::ReadAt's; InvalidArgument
// (too little memory).
absl::StatusOr<std::vector<uint8_t>> ReadRowMajor(
    const FileBytes& values, const std::vector<int64_t>& shape,
    int64_t element_bytes);

}  // namespace muster

#endif  // WORKER_INPUT_FILE_ROW_MAJOR_H_
