#include "worker/input/data_set/create_data_set.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/data_set/open_part.h"
#include "worker/input/data_set/parts_data_set.h"
#include "worker/input/data_set/split_data_set.h"

namespace muster {
namespace {

constexpr char kTestAdvice[] =
    "no test half (a training with --set=input.test_fraction=0.1 keeps a part "
    "of its rows as one)";
constexpr char kOtherHalfAdvice[] =
    "no test half (with --half=validation worker evaluate and predict read the "
    "validation half)";

absl::Status CheckColumns(const InputSpec& spec, const DataSetType& type) {
  const char* unused = nullptr;
  if (!spec.label_column().empty() && !type.has_label_column) {
    unused = "input.label_column";
  }
  if (!spec.weight_column().empty() && !type.has_label_column) {
    unused = "input.weight_column";
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

absl::Status CheckWeightColumn(const DataSetRequest& request) {
  const std::string& name = request.spec.weight_column();
  const bool is_label = absl::c_linear_search(LabelNames(request), name);
  if (name.empty() || (!is_label && name != request.spec.feature_column())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "input.weight_column: '", EscapeForLog(name), "' is the column of the ",
      is_label ? "labels" : "examples", " already; name another"));
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

absl::Status CheckFraction(const InputSpec& spec, Split half, double fraction) {
  const std::string name = absl::StrCat("input.", HalfName(half), "_fraction");
  if (!(fraction >= 0 && fraction < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": wanted a number between 0 and 1, found ", fraction));
  }
  if (fraction == 0 || !spec.stream()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " does not go with input.stream, whose ",
                   HalfName(half), " half would be read into memory: ",
                   half == Split::kTest ? "give files of a test half, or " : "",
                   "leave one of the two out"));
}

absl::Status CheckFractions(const InputSpec& spec) {
  const double test = spec.test_fraction();
  const double validation = spec.validation_fraction();
  RETURN_IF_ERROR(CheckFraction(spec, Split::kTest, test));
  RETURN_IF_ERROR(CheckFraction(spec, Split::kValidation, validation));
  if (test + validation < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "input.test_fraction and input.validation_fraction: wanted less than 1 "
      "in all, found ",
      test, " and ", validation, ", which leave nothing to train on"));
}

// Rows that a run has trained on are of no other half.
absl::Status CheckRunFractions(const DataSetRequest& request) {
  const InputSpec& spec = request.spec;
  // Test rows may come from files instead.
  const bool own_files =
      request.split == Split::kTest && spec.test_fraction() == 0;
  if (request.run == nullptr || request.run->format().empty() || own_files) {
    return absl::OkStatus();
  }
  const auto check = [](const char* field, double run, double now) {
    if (run == now) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is ", now, ", the run was trained with ", run,
                     ", so that rows would be of both halves: --set=", field,
                     "=", run, ", or train anew"));
  };
  RETURN_IF_ERROR(check("input.test_fraction", request.run->test_fraction(),
                        spec.test_fraction()));
  return check("input.validation_fraction", request.run->validation_fraction(),
               spec.validation_fraction());
}

// Whether the half is a part of the training half's files.
absl::StatusOr<bool> IsOfDivided(const InputSpec& spec, Split half) {
  if (half == Split::kTest) return spec.test_fraction() > 0;
  if (half == Split::kValidation && spec.validation_fraction() == 0) {
    return absl::InvalidArgumentError(
        "input.validation_fraction is 0: there is no validation half (a "
        "training with --set=input.validation_fraction=0.1 keeps a part of its "
        "rows as one)");
  }
  return spec.test_fraction() > 0 || spec.validation_fraction() > 0;
}

// The half by its own files.
absl::StatusOr<std::unique_ptr<DataSet>> OpenHalf(const DataSetType& type,
                                                  DataSetRequest request,
                                                  const Shape& input_shape) {
  const InputSpec& spec = request.spec;
  const LabelSpec labels = request.labels;
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
  ASSIGN_OR_RETURN(std::unique_ptr<RowMapper> mapper,
                   RowMapper::Create(spec, request.example_shape, input_shape,
                                     request.seed));
  data_set->set_mapper(std::move(mapper));
  return data_set;
}

// input.test_fraction does not go with files of a test half.
absl::Status CheckNoOtherTestHalf(const DataSetType& type,
                                  DataSetRequest request) {
  request.split = Split::kTest;
  ASSIGN_OR_RETURN(const std::string other, DescribeHalf(type, request));
  if (other.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "input.test_fraction makes a test half of the training half, but there "
      "is one already (",
      other,
      "): leave one of the two out; --set=input.test_fraction=0 reads those "
      "files"));
}

// The half of the training half that the fractions give it.
absl::StatusOr<std::unique_ptr<DataSet>> OpenSplit(const DataSetType& type,
                                                   DataSetRequest request,
                                                   const Shape& input_shape) {
  const SplitFractions fractions = {request.spec.test_fraction(),
                                    request.spec.validation_fraction()};
  if (fractions.test > 0) RETURN_IF_ERROR(CheckNoOtherTestHalf(type, request));
  const Split split = request.split;
  request.split = Split::kTrain;
  const std::string dir = request.spec.dir();
  const bool by_run =
      request.run != nullptr && (request.run->test_fraction() > 0 ||
                                 request.run->validation_fraction() > 0);
  const uint64_t seed = by_run ? request.run->split_seed() : request.seed;
  ASSIGN_OR_RETURN(std::unique_ptr<DataSet> whole,
                   OpenHalf(type, std::move(request), input_shape));
  return SplitDataSet::Create(std::move(whole), dir, fractions, seed, split);
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
  RETURN_IF_ERROR(CheckFractions(spec));
  DataSetRequest request = {spec, input_shape, seed, split, labels};
  if (labels.kind != LabelKind::kTargets) request.labels.num_targets = 0;
  RETURN_IF_ERROR(CheckWeightColumn(request));
  ASSIGN_OR_RETURN(request.example_shape, StoredShape(spec, input_shape));
  return request;
}

absl::StatusOr<std::unique_ptr<DataSet>> CreateDataSet(
    const InputSpec& spec, const Shape& input_shape, uint64_t seed, Split split,
    const LabelSpec& labels, std::shared_ptr<const DataSchema> run,
    const ProgressOutput& output) {
  ASSIGN_OR_RETURN(DataSetRequest request,
                   MakeDataSetRequest(spec, input_shape, seed, split, labels));
  request.run = std::move(run);
  request.progress = std::make_shared<WorkProgress>(output);
  const absl::Cleanup finish = [&request] { request.progress->Finish(); };
  RETURN_IF_ERROR(CheckRunFractions(request));
  ASSIGN_OR_RETURN(const DataSetType type, DataSetRegistry::Find(spec.type()));
  ASSIGN_OR_RETURN(const bool is_of_divided, IsOfDivided(spec, split));
  if (is_of_divided) return OpenSplit(type, request, input_shape);
  absl::StatusOr<std::unique_ptr<DataSet>> half =
      OpenHalf(type, request, input_shape);
  if (split == Split::kTrain || !absl::IsNotFound(half.status())) return half;
  const absl::StatusOr<std::string> found = DescribeHalf(type, request);
  if (!found.ok() || !found->empty()) return half;
  return Annotate(half.status(), spec.validation_fraction() > 0
                                     ? kOtherHalfAdvice
                                     : kTestAdvice);
}

absl::StatusOr<bool> HasTestHalf(const InputSpec& spec) {
  if (spec.test_fraction() > 0) return true;
  ASSIGN_OR_RETURN(const DataSetType type, DataSetRegistry::Find(spec.type()));
  DataSetRequest request;
  request.spec = spec;
  request.split = Split::kTest;
  ASSIGN_OR_RETURN(const std::string half, DescribeHalf(type, request));
  return !half.empty();
}

}  // namespace muster
