#ifndef WORKER_TASK_CLASS_NAMES_FILE_H_
#define WORKER_TASK_CLASS_NAMES_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster {

// The names of a training's classes, in its train_dir: classes.json, a list of
// texts by index. Predictions have them from there where the rows that are to
// be predicted come without classes.

// Replaces the file; nothing without names. Errors: the system's.
absl::Status WriteClassNames(const std::string& train_dir,
                             const std::vector<std::string>& names);

// None if the file is not there, or is no such list.
std::vector<std::string> ReadClassNames(const std::string& train_dir);

}  // namespace muster

#endif  // WORKER_TASK_CLASS_NAMES_FILE_H_
