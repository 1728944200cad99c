#ifndef WORKER_INPUT_DATA_SET_NUMBERED_PARTS_H_
#define WORKER_INPUT_DATA_SET_NUMBERED_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/training.pb.h"

namespace muster {

// A path whose file says that it is one of several:
// "train-00001-of-00004.csv".
struct NumberedPart {
  // "train-".
  std::string before;
  // "00001", as it stands there.
  std::string index_text;
  int64_t index = 0;
  // "-of-".
  std::string of;
  std::string count_text;
  int64_t count = 0;
  // ".csv"; without ".gz".
  std::string after;
};

// The number in the name of a file; none if its name has none.
std::optional<NumberedPart> FindPartNumber(absl::string_view path);

// The files of a half that are read.
struct ChosenParts {
  std::vector<std::string> paths;
  // As DataSet::Remarks.
  std::vector<std::string> remarks;
};

// Chooses from the files of a half: of "FILE" and "FILE.gz" the plain one is
// read. Numbered ones are whole: each index below the count (or from 1 to it)
// is there once. Under ANY those that are there are read, but for empty files,
// and counted in a remark. Errors: InvalidArgument, which names the files that
// are missing, empty, twice there, beyond the count, or of another count.
absl::StatusOr<ChosenParts> ChooseParts(std::vector<std::string> found,
                                        PartsPolicy policy);

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_NUMBERED_PARTS_H_
