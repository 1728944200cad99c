#ifndef WORKER_INPUT_DATA_SET_HALF_NAMES_H_
#define WORKER_INPUT_DATA_SET_HALF_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/input/data_set/data_set_registry.h"

namespace muster {

// "train" or "test".
absl::string_view PartName(Split split);

// Whether a file, or an array, is of a half by its name: it begins with it, or
// has it among its words ("mnist-train.tfrecord", "x_test").
bool NamesHalf(absl::string_view name, Split split);

// Of the names `files` in a folder, those of the half as others call them, for
// a folder where none begins with "train", or "test": those that name it and
// not the other one, or else the one file that may hold both (names.both).
// Errors: InvalidArgument (files of several sets, where they are not
// `in_pairs`).
absl::StatusOr<std::vector<std::string>> OtherNamesOfHalf(
    const std::vector<std::string>& files, Split split, const PartNames& names,
    bool in_pairs);

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_HALF_NAMES_H_
