#ifndef WORKER_INPUT_DATA_SET_FIND_PART_H_
#define WORKER_INPUT_DATA_SET_FIND_PART_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/input/data_set/data_set.h"

namespace muster {

// How the files of a type of data set are called.
struct PartNames {
  // ".csv": the files' endings, ".gz" may follow, and so may "-00000-of-00004".
  std::vector<std::string> endings;
  // Beginnings of a half's files besides "train" and "test".
  std::vector<std::string> also_train = {};
};

// "train" or "test".
absl::string_view PartName(Split split);

// The files of one half of the data set in the folder `dir` (input.dir), sorted
// by path: those whose names begin with "train" or "test" and have a wanted
// ending, and those with such an ending in folders that begin so.
// Errors, naming the folder: InvalidArgument (no `dir`), NotFound (no such
// folder; no such files, with what was looked for and what there is).
absl::StatusOr<std::vector<std::string>> FindPart(const std::string& dir,
                                                  Split split,
                                                  const PartNames& names);

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_FIND_PART_H_
