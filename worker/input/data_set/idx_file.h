#ifndef WORKER_INPUT_DATA_SET_IDX_FILE_H_
#define WORKER_INPUT_DATA_SET_IDX_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// The contents of an IDX file of bytes, and the magic number that says so.
enum class IdxKind : uint32_t {
  // uint8 [N].
  kLabels = 2049,
  // uint8 [N, rows, columns]; 2050 and 2052 for 2 and 4 dimensions.
  kImages = 2051,
};

struct IdxFile {
  // [N], or of images 1 to 4 dimensions, N first.
  std::vector<int64_t> shape;
  // Row-major.
  std::vector<uint8_t> values;
};

// Reads an IDX file, plain or gzip (told by its content, not its name). See
// README.md for the format.
//
// Memory is allocated only after the header was checked against the size of
// the file: exactly for a plain file, and for gzip by the largest ratio that
// deflate can reach, so that a small file cannot ask for much. No more is
// inflated than the header announces.
//
// Errors: NotFound (no such file), Unavailable (read error), InvalidArgument
// (not this kind of file, shorter or longer than its header says, damaged gzip
// data, larger than 8 GiB). Each names the file, what was
// wanted and what was found.
absl::StatusOr<IdxFile> ReadIdxFile(const std::string& path, IdxKind kind);

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_IDX_FILE_H_
