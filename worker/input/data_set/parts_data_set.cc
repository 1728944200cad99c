#include "worker/input/data_set/parts_data_set.h"

#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "worker/input/data_set/data_files.h"
#include "worker/input/data_set/data_schema.h"
#include "worker/input/data_set/open_part.h"
#include "worker/input/data_set/table_part.h"
#include "worker/input/file/bad_rows.h"

namespace muster {

absl::StatusOr<std::unique_ptr<PartsDataSet>> PartsDataSet::Open(
    const DataSetType& type, const DataSetRequest& request) {
  RETURN_IF_ERROR(CheckLabelsOfRun(type, request));
  auto data_set = absl::WrapUnique(new PartsDataSet(type, request));
  RETURN_IF_ERROR(data_set->OpenParts());
  RETURN_IF_ERROR(data_set->FindClassNames());
  RETURN_IF_ERROR(data_set->ReadLabels());
  ASSIGN_OR_RETURN(data_set->class_weights_,
                   ClassWeights::Create(request.labels, data_set->names_,
                                        data_set->num_classes_));
  RETURN_IF_ERROR(data_set->CheckFirstRow());
  return data_set;
}

void PartsDataSet::BeginWork(absl::string_view name, int64_t total) const {
  const bool is_test = request_.split == Split::kTest;
  request_.progress->Begin(
      {absl::StrCat(name, " of the ", is_test ? "test" : "training", " data"),
       total});
}

absl::Status PartsDataSet::OpenParts() {
  BeginWork("opening", /*total=*/0);
  ASSIGN_OR_RETURN(HalfParts half, FindParts(type_, request_));
  for (const PartFiles& files : half.parts) {
    RETURN_IF_ERROR(AddPart(files));
  }
  if (num_examples() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("opening a data set: wanted rows, found none in '",
                     half.files.empty() ? request_.spec.dir() : half.files[0],
                     "' and the files after it"));
  }
  files_ = std::move(half.files);
  remarks_ = std::move(half.remarks);
  absl::c_move(matcher_.Remarks(), std::back_inserter(remarks_));
  for (const auto& part : parts_) {
    absl::c_move(part->Remarks(), std::back_inserter(remarks_));
  }
  if (!files_.empty()) return absl::OkStatus();
  for (const auto& part : parts_) {
    files_.insert(files_.end(), part->files().begin(), part->files().end());
  }
  return absl::OkStatus();
}

absl::Status PartsDataSet::AddPart(const PartFiles& files) {
  const bool is_read_at_random = type_.open != nullptr;
  OpenPart* const open = is_read_at_random ? type_.open : type_.open_in_order;
  ASSIGN_OR_RETURN(std::unique_ptr<Part> part, open(request_, files, known_));
  if (known_.empty()) known_ = part->columns();
  if (!is_read_at_random || !part->columns().empty()) {
    ASSIGN_OR_RETURN(ExampleColumns columns, matcher_.Match(*part));
    if (!is_read_at_random) {
      ASSIGN_OR_RETURN(part, TablePart::Read(type_, request_, columns, *part));
      columns = ExampleColumns::OfTable(request_, *part);
    }
    RETURN_IF_ERROR(AddColumns(*part, std::move(columns)));
  }
  ends_.push_back(num_examples() + *part->num_rows());
  parts_.push_back(std::move(part));
  return absl::OkStatus();
}

absl::Status PartsDataSet::AddColumns(const Part& part,
                                      ExampleColumns columns) {
  if (!columns_.has_value()) {
    columns_.emplace(std::move(columns));
    return absl::OkStatus();
  }
  if (columns.turns_channels() != columns_->turns_channels() ||
      columns.all() != columns_->all()) {
    return absl::InvalidArgumentError(
        absl::StrCat("opening a data set: the channels of the examples of '",
                     part.name(), "' lie unlike those of the files before"));
  }
  return absl::OkStatus();
}

absl::Status PartsDataSet::FindClassNames() {
  const LabelKind kind = request_.labels.kind;
  if (type_.class_texts == ClassTexts::kNone || kind == LabelKind::kTargets ||
      (request_.spec.stream() && type_.open_in_order != nullptr &&
       !has_classes_of_run())) {
    return absl::OkStatus();
  }
  if (has_classes_of_run()) {
    names_ = ClassNamesOf(*request_.run);
  } else if (kind == LabelKind::kClass && request_.split == Split::kTrain) {
    RETURN_IF_ERROR(CollectClassNames());
  } else {
    DataSetRequest train = request_;
    train.split = Split::kTrain;
    train.labels = {};
    PartsDataSet half(type_, train);
    absl::Status status = half.OpenParts();
    if (status.ok()) status = half.CollectClassNames();
    // A half without labels may be without the training half, too.
    if (kind == LabelKind::kClass) RETURN_IF_ERROR(status);
    names_ = std::move(half.names_);
  }
  if (!names_.empty()) known_names_.emplace(names_);
  return absl::OkStatus();
}

absl::Status PartsDataSet::CollectClassNames() {
  if (!columns_.has_value()) return absl::OkStatus();
  muster::ClassNames found(
      {}, /*has_numbers=*/type_.class_texts == ClassTexts::kNamesOrNumbers);
  BeginWork("classes", num_examples());
  Row row;
  for (int64_t i = 0; i < num_examples(); ++i) {
    request_.progress->AddRow();
    absl::Status status = ReadRow(i, columns_->labels(), &row);
    if (status.ok()) status = found.Number(columns_->ClassText(row)).status();
    if (!status.ok() && !SkipsLabel(status)) return WithPlace(status, i);
  }
  names_ = found.Names();
  return absl::OkStatus();
}

absl::Status PartsDataSet::ReadLabels() {
  if (request_.labels.kind == LabelKind::kNone || !columns_.has_value()) {
    return absl::OkStatus();
  }
  num_classes_ = columns_->columns()[columns_->labels()[0]].num_classes;
  // A part that says its classes has checked its labels.
  if (num_classes_ > 0) return absl::OkStatus();
  Row row;
  int32_t label = -1;
  int32_t largest = -1;
  std::vector<float> targets(request_.labels.num_targets);
  ExampleMemory into;
  into.label = targets.empty() ? &label : nullptr;
  into.targets = targets.empty() ? nullptr : targets.data();
  if (targets.empty()) classes_.assign(num_examples(), -1);
  BeginWork("labels", num_examples());
  for (int64_t i = 0; i < num_examples(); ++i) {
    request_.progress->AddRow();
    absl::Status status = ReadRow(i, columns_->labels(), &row);
    const bool is_whole = status.ok();
    if (is_whole) status = ReadLabel(row, into);
    if (status.ok()) {
      if (targets.empty()) classes_[i] = label;
      if (label <= largest) continue;
      largest = label;
      largest_row_ = i;
    } else if (!SkipsLabel(status) || (is_whole && IsUnknownClass(row))) {
      return WithPlace(status, i);
    }
  }
  num_classes_ =
      names_.empty() ? largest + 1 : static_cast<int64_t>(names_.size());
  return CheckClasses();
}

absl::Status PartsDataSet::CheckClasses() {
  if (!has_classes_of_run() || classes_.empty()) return absl::OkStatus();
  const int64_t of_run = ClassesOfRun(request_);
  if (of_run > 0 && num_classes_ > of_run) {
    return absl::InvalidArgumentError(
        absl::StrCat("opening a data set: ", LargestLabelPlace(),
                     " is of class ", num_classes_ - 1,
                     ", which the run does not know: its classes are 0 to ",
                     of_run - 1, "; take it out, or train anew"));
  }
  num_classes_ = std::max(num_classes_, of_run);
  if (request_.split == Split::kTrain) SayMissingClasses();
  return absl::OkStatus();
}

void PartsDataSet::SayMissingClasses() {
  std::vector<bool> occurs(num_classes_);
  for (const int32_t label : classes_) {
    if (label >= 0) occurs[label] = true;
  }
  google::protobuf::RepeatedPtrField<std::string> missing;
  for (int64_t i = 0; i < num_classes_; ++i) {
    if (occurs[i]) continue;
    *missing.Add() = names_.empty() ? absl::StrCat(i) : Utf8OfBytes(names_[i]);
  }
  if (missing.empty()) return;
  remarks_.push_back(absl::StrCat(
      "no row has one of these of the run's ", num_classes_,
      " classes, which keep their numbers: ", ShownNames(missing)));
}

bool PartsDataSet::SkipsLabel(const absl::Status& status) const {
  return skips_bad() && !type_.has_labels_apart && IsBadRecord(status);
}

bool PartsDataSet::IsUnknownClass(const Row& row) const {
  if (!has_classes_of_run() || !known_names_.has_value() ||
      !columns_->has_texts()) {
    return false;
  }
  const absl::string_view name = columns_->ClassText(row);
  return !name.empty() && !known_names_->Find(name).ok();
}

DataSchema PartsDataSet::Schema() const {
  DataSchema schema = matcher_.found();
  DataLabel& label = *schema.mutable_label();
  if (label.kind() == kClassLabel) {
    label.set_num_classes(num_classes_);
    for (const std::string& name : names_) {
      label.add_class_name(Utf8OfBytes(name));
    }
  }
  DataHalf& half = request_.split == Split::kTrain ? *schema.mutable_training()
                                                   : *schema.mutable_test();
  half.set_rows(num_examples());
  *half.mutable_files() =
      DescribeDataFiles(num_examples(), request_.spec.dir(), files_);
  return schema;
}

absl::Status PartsDataSet::CheckFirstRow() const {
  std::vector<float> values(request_.example_shape.num_elements());
  float weight = 1;
  ExampleMemory into;
  into.values = values.data();
  if (has_weights()) into.weight = &weight;
  const int64_t most = std::min(num_examples(), kMostBadInARow);
  for (int64_t row = 0; row < most; ++row) {
    const absl::Status status = ReadStored(row, into);
    if (!skips_bad() || !IsBadRecord(status)) return status;
    if (row + 1 == most) return AllBad(most, status);
  }
  return absl::OkStatus();
}

absl::Status PartsDataSet::MakeTargetsOfClasses(int64_t num_targets) {
  if (num_targets > 1 && num_classes_ > num_targets) {
    const std::string place = LargestLabelPlace();
    return absl::InvalidArgumentError(absl::StrCat(
        "the data set has ", num_classes_, " classes",
        place.empty() ? "" : absl::StrCat(" (the largest in ", place, ")"),
        ", the model's loss compares ", num_targets,
        " outputs: give it one for each class, or one in all"));
  }
  num_class_targets_ = num_targets;
  return absl::OkStatus();
}

const Part& PartsDataSet::PartOf(int64_t* row) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), *row);
  if (end != ends_.begin()) *row -= *(end - 1);
  return *parts_[end - ends_.begin()];
}

std::string PartsDataSet::RowName(int64_t index) const {
  return PartOf(&index).RowName(index);
}

std::string PartsDataSet::LargestLabelPlace() const {
  if (largest_row_ < 0) return "";
  int64_t row = largest_row_;
  return PartOf(&row).Place(row);
}

absl::Status PartsDataSet::WithPlace(const absl::Status& status,
                                     int64_t index) const {
  return AtPlace(status, PartOf(&index).Place(index));
}

absl::Status PartsDataSet::ReadRow(int64_t index,
                                   absl::Span<const size_t> wanted,
                                   Row* row) const {
  const Part& part = PartOf(&index);
  if (part.columns().empty()) wanted = {};
  row->cells.resize(part.columns().size());
  RETURN_IF_ERROR(part.Read(index, wanted, row));
  if (!part.columns().empty()) return absl::OkStatus();
  return absl::DataLossError("the row was damaged when the file was opened");
}

absl::Status PartsDataSet::ReadLabel(const Row& row,
                                     const ExampleMemory& into) const {
  if (request_.labels.kind == LabelKind::kNone) return absl::OkStatus();
  if (request_.labels.kind == LabelKind::kTargets) {
    thread_local std::vector<float> unwanted;
    unwanted.resize(request_.labels.num_targets);
    return columns_->ReadTargets(
        row, into.targets != nullptr ? into.targets : unwanted.data());
  }
  ASSIGN_OR_RETURN(
      const int32_t label,
      columns_->ReadClass(row, known_names_ ? &*known_names_ : nullptr));
  WriteClass(label, into);
  return absl::OkStatus();
}

void PartsDataSet::WriteClass(int32_t label, const ExampleMemory& into) const {
  if (into.label != nullptr) *into.label = label;
  if (into.targets == nullptr) return;
  if (num_class_targets_ == 1) {
    into.targets[0] = static_cast<float>(label);
    return;
  }
  std::fill_n(into.targets, num_class_targets_, 0.0f);
  if (label < num_class_targets_) into.targets[label] = 1;
}

absl::Status PartsDataSet::ReadStored(int64_t index,
                                      const ExampleMemory& into) const {
  // A thread's own, so that nothing is allocated from row to row.
  thread_local Row row;
  int32_t label = classes_.empty() ? -1 : classes_[index];
  const bool has_class = label >= 0;
  ExampleMemory own = into;
  if (own.label == nullptr) own.label = &label;
  absl::Span<const size_t> wanted;
  if (columns_.has_value()) {
    wanted = has_class && into.weight == nullptr ? columns_->values()
                                                 : columns_->all();
  }
  if (columns_.has_value() && !columns_->turns_channels()) {
    row.target = {into.values, static_cast<size_t>(num_values_)};
  } else {
    row.target = {};
  }
  absl::Status status = ReadRow(index, wanted, &row);
  if (status.ok() && !has_class) status = ReadLabel(row, own);
  if (status.ok()) status = columns_->ReadValues(row, into.values);
  if (has_class) WriteClass(label, own);
  if (status.ok() && into.weight != nullptr) {
    status = columns_->ReadWeight(row, into.weight);
    if (status.ok()) status = class_weights_.Weigh(*own.label, into.weight);
  }
  return status.ok() ? status : WithPlace(status, index);
}

absl::Status PartsDataSet::ReadMapped(int64_t index,
                                      std::optional<int64_t> epoch,
                                      const ExampleMemory& into) const {
  if (mapper_ == nullptr) return ReadStored(index, into);
  const auto read = [&](const ExampleMemory& stored) {
    return ReadStored(index, stored);
  };
  return mapper_->Map(index, epoch, read, into);
}

}  // namespace muster
