#ifndef WORKER_INPUT_DATA_SET_REGISTRY_H_
#define WORKER_INPUT_DATA_SET_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/registry.h"
#include "common/tensor/shape.h"
#include "proto/training.pb.h"
#include "worker/input/data_set.h"

namespace muster {

// A type of data set; the arguments and errors of `create` are those of
// CreateDataSet.
struct DataSetType {
  // One line about it.
  std::string help;
  absl::StatusOr<std::unique_ptr<DataSet>> (*create)(const InputSpec& spec,
                                                     const Shape& input_shape,
                                                     uint64_t seed,
                                                     Split split) = nullptr;
  // input.label_column and input.feature_column mean something to it.
  bool has_label_column = false;
  bool has_feature_column = false;
};

struct DataSetTag {
  static constexpr char kKind[] = "data set";
};

// Data sets by their `input.type`, which are listed in data_sets.bzl:
//
//   // In an anonymous namespace of csv_data_set.cc:
//   [[maybe_unused]] const bool kRegistered =
//       DataSetRegistry::Register("csv", {"rows of a text file", &Create});
using DataSetRegistry = Registry<DataSetTag, DataSetType>;

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_REGISTRY_H_
