#ifndef WORKER_INPUT_FILE_EXPAND_FILES_H_
#define WORKER_INPUT_FILE_EXPAND_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The files that `text` names: one file, or names and glob patterns (*, ?, [])
// separated by commas. A name that is a file is that file, whatever it
// contains. They come sorted by bytes, each once, so that every worker sees
// the same order.
// Errors, each with the pattern and its folder: NotFound (no such file, none
// that matches), InvalidArgument (no name; a folder, a fifo, a device),
// Unavailable (a folder that cannot be read).
absl::StatusOr<std::vector<std::string>> ExpandFiles(absl::string_view text);

}  // namespace muster

#endif  // WORKER_INPUT_FILE_EXPAND_FILES_H_
