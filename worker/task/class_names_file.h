#ifndef WORKER_TASK_CLASS_NAMES_FILE_H_
#define WORKER_TASK_CLASS_NAMES_FILE_H_

#include <string>
#include <vector>

namespace muster {

// The names of the classes that a run of before schema.textproto had, from its
// train_dir: classes.json, a list of texts by index. None if the file is not
// there, or is no such list.
std::vector<std::string> ReadClassNames(const std::string& train_dir);

}  // namespace muster

#endif  // WORKER_TASK_CLASS_NAMES_FILE_H_
