#include "worker/input/data_set/create_data_set.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/data_set/parts_data_set.h"

namespace muster {
namespace {

absl::Status CheckColumns(const InputSpec& spec, const DataSetType& type) {
  const char* unused = nullptr;
  if (!spec.label_column().empty() && !type.has_label_column) {
    unused = "input.label_column";
  }
  if (!spec.feature_column().empty() && !type.has_feature_column) {
    unused = "input.feature_column";
  }
  if (spec.has_header() && !type.has_header) unused = "input.header";
  if (unused == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(unused, " means nothing to input.type \"", spec.type(),
                   "\", whose files have none: leave it out"));
}

// An example before input.map: input.shape, or as the model reads it.
absl::StatusOr<Shape> StoredShape(const InputSpec& spec,
                                  const Shape& input_shape) {
  if (spec.shape().empty()) return input_shape;
  const std::vector<int64_t> dims(spec.shape().begin(), spec.shape().end());
  const absl::StatusOr<Shape> shape = Shape::Create(dims);
  if (!shape.ok()) return Annotate(shape.status(), "input.shape");
  if (shape->num_elements() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input.shape: each size must be 1 or more, found ", shape->ToString()));
  }
  RETURN_IF_ERROR(
      CheckMemory("input.shape: an example",
                  SaturatingProduct(shape->num_elements(), sizeof(float)),
                  OwnMemoryLimit()));
  if (spec.map().empty() &&
      shape->num_elements() != input_shape.num_elements()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input.shape is ", shape->ToString(), ", model.input_shape is ",
        input_shape.ToString(),
        ": give them as many values, or let input.map make one of the other"));
  }
  return shape;
}

}  // namespace

absl::StatusOr<DataSetRequest> MakeDataSetRequest(const InputSpec& spec,
                                                  const Shape& input_shape,
                                                  uint64_t seed, Split split,
                                                  const LabelSpec& labels) {
  const absl::StatusOr<DataSetType> type = DataSetRegistry::Find(spec.type());
  if (!type.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.type: ", type.status().message()));
  }
  RETURN_IF_ERROR(CheckColumns(spec, *type));
  DataSetRequest request = {spec, input_shape, seed, split, labels};
  if (labels.kind != LabelKind::kTargets) request.labels.num_targets = 0;
  ASSIGN_OR_RETURN(request.example_shape, StoredShape(spec, input_shape));
  return request;
}

absl::StatusOr<std::unique_ptr<DataSet>> CreateDataSet(
    const InputSpec& spec, const Shape& input_shape, uint64_t seed, Split split,
    const LabelSpec& labels, std::shared_ptr<const DataSchema> run) {
  ASSIGN_OR_RETURN(DataSetRequest request,
                   MakeDataSetRequest(spec, input_shape, seed, split, labels));
  request.run = std::move(run);
  ASSIGN_OR_RETURN(const DataSetType type, DataSetRegistry::Find(spec.type()));
  const bool targets_of_classes =
      labels.kind == LabelKind::kTargets && !type.has_targets;
  if (targets_of_classes) request.labels = {};
  absl::StatusOr<std::unique_ptr<PartsDataSet>> opened =
      PartsDataSet::Open(type, request);
  if (!opened.ok() && spec.shape().empty() && !spec.map().empty()) {
    return Annotate(opened.status(),
                    "input.map without input.shape, so that the data set must "
                    "have examples of model.input_shape");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<PartsDataSet> data_set, std::move(opened));
  if (targets_of_classes) {
    RETURN_IF_ERROR(data_set->MakeTargetsOfClasses(labels.num_targets));
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<RowMapper> mapper,
      RowMapper::Create(spec, request.example_shape, input_shape, seed));
  data_set->set_mapper(std::move(mapper));
  return data_set;
}

}  // namespace muster
