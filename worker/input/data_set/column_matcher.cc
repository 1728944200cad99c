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

namespace muster {
namespace {

// As many names that are left out are kept.
constexpr size_t kMostLeftOut = 1000;

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

}  // namespace

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
  if (label.kind() != kClassLabel) return absl::OkStatus();
  if (type.class_texts == ClassTexts::kNone && !label.class_name().empty()) {
    return Refused("classes", ShownNames(label.class_name()),
                   absl::StrCat("the numbers of input.type \"",
                                request.spec.type(), "\""));
  }
  if (type.class_texts == ClassTexts::kNames && label.class_name().empty()) {
    return Refused(
        "classes", "numbers",
        absl::StrCat("the names of input.type \"", request.spec.type(), "\""));
  }
  return absl::OkStatus();
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
    if (left_out_.size() == kMostLeftOut && !is_closed_) break;
    std::string name = Utf8OfBytes(columns.columns()[column].name);
    if (absl::c_linear_search(left_out_, name)) continue;
    if (is_closed_) {
      return absl::InvalidArgumentError(
          absl::StrCat("opening a data set: '", EscapeForLog(part.name()),
                       "' has the column '", ShownName(name),
                       "', which neither the files before it nor ", owner_,
                       " have; take it "
                       "out"));
    }
    if (left_out_.empty()) file_of_left_out_ = part.name();
    left_out_.push_back(std::move(name));
  }
  return absl::OkStatus();
}

std::vector<std::string> ColumnMatcher::Remarks() const {
  if (left_out_.empty()) return {};
  return {absl::StrCat("'", EscapeForLog(file_of_left_out_),
                       "' and the files after it have columns that ", owner_,
                       " does not have, which are left out of the examples: ",
                       ShownNames({left_out_.begin(), left_out_.end()}))};
}

}  // namespace muster
