#ifndef WORKER_INPUT_FILE_REGULAR_FILE_H_
#define WORKER_INPUT_FILE_REGULAR_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/file_descriptor.h"

namespace muster {

// An open file of data, at its beginning.
struct RegularFile {
  FileDescriptor descriptor;
  int64_t size = 0;
  // By its first two bytes, whatever its name says.
  bool is_gzip = false;
};

// Opens `path` for reading; a fifo or a terminal is not waited for.
// Errors, without the path: NotFound; Unavailable (cannot be opened or read);
// InvalidArgument (a folder, a fifo, a device).
absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path);

}  // namespace muster

#endif  // WORKER_INPUT_FILE_REGULAR_FILE_H_
