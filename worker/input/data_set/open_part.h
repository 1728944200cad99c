#ifndef WORKER_INPUT_DATA_SET_OPEN_PART_H_
#define WORKER_INPUT_DATA_SET_OPEN_PART_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/part.h"

namespace muster {

// The files of a half, and the parts that they make.
struct HalfParts {
  // Sorted by path; empty if the parts themselves know them.
  std::vector<std::string> files;
  std::vector<PartFiles> parts;
  // As DataSet::Remarks.
  std::vector<std::string> remarks;
};

// "train" or "test".
absl::string_view PartName(Split split);

// The columns of labels: the run's, or else those that input.label_column
// names, separated by commas if they are targets, or else "label".
std::vector<std::string> LabelNames(const DataSetRequest& request);

// Finds the parts of the requested half: files whose names begin with "train"
// or "test" and have a wanted ending, and those with such an ending in folders
// that begin so. Errors: InvalidArgument (no input.dir), NotFound (no such
// folder; no such files, with what was looked for and what there is), those of
// type.pair.
absl::StatusOr<HalfParts> FindParts(const DataSetType& type,
                                    const DataSetRequest& request);

// The error of a row, with its place, unless it has one.
absl::Status AtPlace(const absl::Status& status, absl::string_view place);

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_OPEN_PART_H_
