#include "worker/input/data_set/column_matcher.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "worker/input/data_set/data_schema.h"
#include "worker/input/data_set/open_part.h"
#include "worker/input/file/class_names.h"

namespace muster {
namespace {

const char* KindName(LabelKind kind) {
  switch (kind) {
    case LabelKind::kClass:
      return kClassLabel;
    case LabelKind::kTargets:
      return kTargetsLabel;
    case LabelKind::kNone:
      break;
  }
  return kNoLabel;
}

absl::Status Refused(absl::string_view field, absl::string_view of_run,
                     absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat("opening a data set: ", field, ": the run has ", of_run,
                   ", found ", found, "; give it the run's, or train anew"));
}

// Names where the reader has numbers, or the other way round; a number of
// classes that no data have.
absl::Status CheckClassesOfRun(const DataSetType& type,
                               const DataSetRequest& request) {
  const DataLabel& label = request.run->label();
  if (label.num_classes() < 0 ||
      label.num_classes() > ClassNames::kMaxClasses ||
      label.class_name_size() > ClassNames::kMaxClasses) {
    return absl::InvalidArgumentError(absl::StrCat(
        "opening a data set: the run's schema says ", label.num_classes(),
        " classes and has ", label.class_name_size(),
        " names of classes, wanted at most ", ClassNames::kMaxClasses));
  }
  const std::string reader =
      absl::StrCat("of input.type \"", request.spec.type(), "\"");
  if (type.class_texts == ClassTexts::kNone && !label.class_name().empty()) {
    return Refused("classes", ShownNames(label.class_name()),
                   absl::StrCat("the numbers ", reader));
  }
  if (type.class_texts == ClassTexts::kNames && label.class_name().empty()) {
    return Refused("classes", "numbers", absl::StrCat("the names ", reader));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t ClassesOfRun(const DataSetRequest& request) {
  if (request.run == nullptr) return 0;
  const DataLabel& label = request.run->label();
  return label.class_name().empty() ? label.num_classes()
                                    : label.class_name_size();
}

absl::Status CheckLabelsOfRun(const DataSetType& type,
                              const DataSetRequest& request) {
  if (request.run == nullptr) return absl::OkStatus();
  const DataLabel& label = request.run->label();
  if (label.kind().empty() || label.kind() == kNoLabel) return absl::OkStatus();
  const LabelKind kind = request.labels.kind;
  if (kind != LabelKind::kNone && label.kind() != KindName(kind)) {
    return Refused("labels", label.kind(), KindName(kind));
  }
  if (!request.spec.label_column().empty() && !label.column().empty()) {
    DataSetRequest own = request;
    own.run = nullptr;
    if (label.kind() == kTargetsLabel) own.labels.kind = LabelKind::kTargets;
    if (label.kind() == kClassLabel) own.labels.kind = LabelKind::kClass;
    std::vector<std::string> names;
    for (const std::string& name : LabelNames(own)) {
      names.push_back(Utf8OfBytes(name));
    }
    if (!absl::c_equal(names, label.column())) {
      return Refused("input.label_column", ShownNames(label.column()),
                     ShownNames({names.begin(), names.end()}));
    }
  }
  return label.kind() == kClassLabel ? CheckClassesOfRun(type, request)
                                     : absl::OkStatus();
}

absl::StatusOr<ExampleColumns> ColumnMatcher::Match(const Part& part) {
  ASSIGN_OR_RETURN(ExampleColumns columns,
                   ExampleColumns::Create(request_, part, owner_));
  RETURN_IF_ERROR(AddLeftOut(part, columns));
  if (is_described_) return columns;
  is_described_ = true;
  columns.Describe(&found_);
  found_.mutable_label()->set_kind(KindName(request_.labels.kind));
  if (!has_label_column_) found_.mutable_label()->clear_column();
  if (request_.run == nullptr) {
    request_.run = std::make_shared<const DataSchema>(found_);
    owner_ = absl::StrCat("'", EscapeForLog(part.name()), "'");
  }
  return columns;
}

absl::Status ColumnMatcher::AddLeftOut(const Part& part,
                                       const ExampleColumns& columns) {
  for (const size_t column : columns.left_out()) {
    std::string name = Utf8OfBytes(columns.columns()[column].name);
    if (are_left_out_.contains(name)) continue;
    if (is_closed_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "opening a data set: '", EscapeForLog(part.name()),
          "' has the column '", ShownName(name), "', which neither ", owner_,
          " nor the files before it have; take it out"));
    }
    if (left_out_.empty()) file_of_left_out_ = part.name();
    are_left_out_.insert(name);
    *left_out_.Add() = std::move(name);
  }
  return absl::OkStatus();
}

std::vector<std::string> ColumnMatcher::Remarks() const {
  if (left_out_.empty()) return {};
  return {absl::StrCat("'", EscapeForLog(file_of_left_out_),
                       "', or a file after it, has columns that ", owner_,
                       " does not have, which are left out of the examples: ",
                       ShownNames(left_out_))};
}

}  // namespace muster
