#ifndef WORKER_INPUT_DATA_SET_DATA_SET_REGISTRY_H_
#define WORKER_INPUT_DATA_SET_DATA_SET_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/registry.h"
#include "common/tensor/shape.h"
#include "proto/training.pb.h"
#include "worker/input/data_set/data_set.h"

namespace muster {

// The labels beside an example's values.
enum class LabelKind {
  kClass,
  // Numbers that a model's outputs are compared with.
  kTargets,
  // Nothing: the files need not have labels.
  kNone,
};

struct LabelSpec {
  LabelKind kind = LabelKind::kClass;
  // kTargets: how many a row has.
  int64_t num_targets = 0;
};

// The half of a data set that is to be opened.
struct DataSetRequest {
  InputSpec spec;
  // One example before input.map.
  Shape example_shape;
  uint64_t seed = 0;
  Split split = Split::kTrain;
  // Types without has_targets are not asked for kTargets.
  LabelSpec labels;
};

// A type of data set; the errors of `create` are those of CreateDataSet.
struct DataSetType {
  // One line about it.
  std::string help;
  absl::StatusOr<std::unique_ptr<DataSet>> (*create)(
      const DataSetRequest& request) = nullptr;
  // input.label_column and input.feature_column mean something to it.
  bool has_label_column = false;
  bool has_feature_column = false;
  // Its labels may be targets; else a class stands for them.
  bool has_targets = false;
  // A row costs more than copying its bytes.
  bool decodes = false;
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

#endif  // WORKER_INPUT_DATA_SET_DATA_SET_REGISTRY_H_
