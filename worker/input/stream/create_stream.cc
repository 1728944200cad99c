#include "worker/input/stream/create_stream.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/class_weights.h"
#include "worker/input/data_set/column_matcher.h"
#include "worker/input/data_set/create_data_set.h"
#include "worker/input/data_set/data_files.h"
#include "worker/input/data_set/data_schema.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/example_columns.h"
#include "worker/input/data_set/open_part.h"
#include "worker/input/data_set/row_mapper.h"
#include "worker/input/file/bad_rows.h"
#include "worker/input/file/class_names.h"

namespace muster {
namespace {

// The rows of the parts of the training half, one part after the other, and
// input.map.
class PartsStream : public ExampleStream {
 public:
  // Begins with the first row. `num_classes`: classes of rows, if they have
  // any, are below it. A null `mapper` maps nothing. Errors: those of
  // DataSetType's functions and of ExampleColumns.
  static absl::StatusOr<std::unique_ptr<PartsStream>> Open(
      const DataSetType& type, const DataSetRequest& request,
      int64_t num_classes, std::unique_ptr<RowMapper> mapper);

  const Shape& example_shape() const override {
    return mapper_ == nullptr ? request_.example_shape
                              : mapper_->example_shape();
  }
  int64_t num_targets() const override { return request_.labels.num_targets; }
  bool has_weights() const override { return request_.labels.weighted; }
  std::vector<std::string> Files() const override { return half_.files; }
  std::vector<std::string> Remarks() const override;
  DataSchema Schema() const override;
  // Who opened the stream reads its remarks now.
  void CloseRemarks() { matcher_.CloseRemarks(); }
  absl::Status Begin() override;
  absl::StatusOr<bool> Next(StreamRecord* record) override;
  absl::Status Decode(const StreamRecord& record, int64_t epoch,
                      const ExampleMemory& into) const override;

 private:
  PartsStream(const DataSetType& type, const DataSetRequest& request,
              HalfParts half, int64_t num_classes,
              std::unique_ptr<RowMapper> mapper)
      : type_(type),
        request_(request),
        half_(std::move(half)),
        num_classes_(num_classes),
        mapper_(std::move(mapper)),
        matcher_(type, request) {}

  absl::Status OpenPart(size_t index);
  absl::Status DecodeStored(const StreamRecord& record,
                            const ExampleMemory& into) const;
  absl::Status ReadClass(const ExampleColumns& columns, const Row& row,
                         int32_t* label) const;
  // Takes the classes from the run; without one they are numbers.
  absl::Status FindClasses();

  const DataSetType type_;
  const DataSetRequest request_;
  const HalfParts half_;
  int64_t num_classes_;
  const std::unique_ptr<RowMapper> mapper_;
  std::optional<ClassNames> class_names_;
  ClassWeights class_weights_;
  ColumnMatcher matcher_;
  // The columns of the first part whose rows show any, for the parts after it.
  std::vector<Column> known_;
  // The columns of parts, once for all that have the same names in the same
  // order. Records point at them.
  std::map<std::vector<std::string>, ExampleColumns> layouts_;
  const ExampleColumns* columns_ = nullptr;
  // The part that is read, and the row that comes next.
  std::unique_ptr<Part> part_;
  size_t index_ = 0;
  int64_t row_ = 0;
};

absl::StatusOr<std::unique_ptr<PartsStream>> PartsStream::Open(
    const DataSetType& type, const DataSetRequest& request, int64_t num_classes,
    std::unique_ptr<RowMapper> mapper) {
  RETURN_IF_ERROR(CheckLabelsOfRun(type, request));
  ASSIGN_OR_RETURN(HalfParts half, FindParts(type, request));
  auto stream = absl::WrapUnique(new PartsStream(
      type, request, std::move(half), num_classes, std::move(mapper)));
  RETURN_IF_ERROR(stream->FindClasses());
  RETURN_IF_ERROR(stream->Begin());
  return stream;
}

absl::Status PartsStream::FindClasses() {
  if (request_.labels.kind != LabelKind::kClass) return absl::OkStatus();
  const int64_t of_run = ClassesOfRun(request_);
  if (of_run > 0) num_classes_ = std::min(num_classes_, of_run);
  std::vector<std::string> names;
  if (request_.run != nullptr) names = ClassNamesOf(*request_.run);
  ASSIGN_OR_RETURN(class_weights_,
                   ClassWeights::Create(request_.labels, names, num_classes_));
  if (!names.empty()) class_names_.emplace(std::move(names));
  return absl::OkStatus();
}

std::vector<std::string> PartsStream::Remarks() const {
  std::vector<std::string> remarks = half_.remarks;
  for (std::string& remark : matcher_.Remarks()) {
    remarks.push_back(std::move(remark));
  }
  return remarks;
}

DataSchema PartsStream::Schema() const {
  DataSchema schema = matcher_.found();
  DataLabel& label = *schema.mutable_label();
  if (label.kind() == kClassLabel) {
    label.set_num_classes(num_classes_);
    if (class_names_.has_value()) {
      *label.mutable_class_name() = request_.run->label().class_name();
    }
  }
  *schema.mutable_training()->mutable_files() =
      DescribeDataFiles(/*examples=*/0, request_.spec.dir(), half_.files);
  return schema;
}

absl::Status PartsStream::Begin() {
  row_ = 0;
  return OpenPart(0);
}

absl::Status PartsStream::OpenPart(size_t index) {
  index_ = index;
  ASSIGN_OR_RETURN(part_,
                   type_.open_in_order(request_, half_.parts[index], known_));
  columns_ = nullptr;
  if (part_->columns().empty()) return absl::OkStatus();
  if (known_.empty()) known_ = part_->columns();
  ASSIGN_OR_RETURN(ExampleColumns columns, matcher_.Match(*part_));
  std::vector<std::string> names;
  for (const Column& column : part_->columns()) names.push_back(column.name);
  columns_ =
      &layouts_.try_emplace(std::move(names), std::move(columns)).first->second;
  return absl::OkStatus();
}

absl::StatusOr<bool> PartsStream::Next(StreamRecord* record) {
  record->bad = absl::OkStatus();
  while (true) {
    ASSIGN_OR_RETURN(const bool more, part_->Next(record));
    if (more) break;
    if (index_ + 1 == half_.parts.size()) return false;
    RETURN_IF_ERROR(OpenPart(index_ + 1));
  }
  record->file = index_;
  record->columns = columns_;
  record->row = row_++;
  return true;
}

absl::Status PartsStream::Decode(const StreamRecord& record, int64_t epoch,
                                 const ExampleMemory& into) const {
  const auto read = [&](const ExampleMemory& stored) {
    return DecodeStored(record, stored);
  };
  const absl::Status status = mapper_ == nullptr
                                  ? read(into)
                                  : mapper_->Map(record.row, epoch, read, into);
  if (status.ok()) return status;
  return AtPlace(status,
                 absl::StrCat(type_.place_name, " ", record.place, " of '",
                              half_.parts[record.file].back(), "'"));
}

absl::Status PartsStream::DecodeStored(const StreamRecord& record,
                                       const ExampleMemory& into) const {
  RETURN_IF_ERROR(record.bad);
  if (record.columns == nullptr) {
    return absl::DataLossError("no row before this one was good");
  }
  const ExampleColumns& columns = *record.columns;
  // A thread's own: nothing is allocated from row to row.
  thread_local Row row;
  row.cells.resize(columns.columns().size());
  const LabelKind kind = request_.labels.kind;
  const bool has_class = kind == LabelKind::kClass && into.label != nullptr;
  const bool has_targets =
      kind == LabelKind::kTargets && into.targets != nullptr;
  RETURN_IF_ERROR(type_.parse(
      columns.columns(), record,
      has_class || has_targets ? columns.all() : columns.values(), &row));
  if (has_class) RETURN_IF_ERROR(ReadClass(columns, row, into.label));
  if (has_targets) RETURN_IF_ERROR(columns.ReadTargets(row, into.targets));
  if (into.weight != nullptr) {
    RETURN_IF_ERROR(columns.ReadWeight(row, into.weight));
    if (has_class) {
      RETURN_IF_ERROR(class_weights_.Weigh(*into.label, into.weight));
    }
  }
  return columns.ReadValues(row, into.values);
}

absl::Status PartsStream::ReadClass(const ExampleColumns& columns,
                                    const Row& row, int32_t* label) const {
  const absl::StatusOr<int32_t> found = columns.ReadClass(
      row, class_names_.has_value() ? &*class_names_ : nullptr);
  if (!found.ok()) {
    const absl::Status& error = found.status();
    if (!columns.has_texts() || class_names_.has_value()) return error;
    return absl::Status(
        error.code(),
        absl::StrCat(error.message(),
                     "; the classes of a stream are numbers, because their "
                     "names are not known before all rows are: write numbers, "
                     "or leave input.stream out"));
  }
  if (*found >= num_classes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a label must be a class from 0 to ", num_classes_ - 1,
                     ", one for each of the model's outputs",
                     request_.run == nullptr ? "" : " and the run's classes",
                     ", found ", *found));
  }
  *label = *found;
  return absl::OkStatus();
}

std::vector<std::string> StreamTypes() {
  std::vector<std::string> types;
  for (const std::string& name : DataSetRegistry::Names()) {
    const auto type = DataSetRegistry::Find(name);
    if (type.ok() && type->open_in_order != nullptr) types.push_back(name);
  }
  return types;
}

// The first row, or the first good one, shows whether the model can read them.
absl::Status CheckFirstRow(BadRecordPolicy on_bad, const LabelSpec& labels,
                           ExampleStream* stream) {
  std::vector<float> values(stream->example_shape().num_elements());
  std::vector<float> targets(labels.num_targets);
  int32_t label = 0;
  float weight = 1;
  ExampleMemory into;
  if (labels.weighted) into.weight = &weight;
  into.values = values.data();
  if (!targets.empty()) into.targets = targets.data();
  if (labels.kind == LabelKind::kClass) into.label = &label;
  RETURN_IF_ERROR(stream->Begin());
  StreamRecord record;
  absl::Status bad;
  for (int64_t row = 0; row < kMostBadInARow; ++row) {
    ASSIGN_OR_RETURN(const bool more, stream->Next(&record));
    if (!more) return bad.ok() ? absl::OkStatus() : AllBad(row, bad);
    bad = stream->Decode(record, /*epoch=*/0, into);
    if (on_bad != SKIP || !IsBadRecord(bad)) return bad;
  }
  return AllBad(kMostBadInARow, bad);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExampleStream>> CreateStream(
    const InputSpec& spec, const Shape& input_shape, uint64_t seed,
    const LabelSpec& labels, int64_t num_classes,
    std::shared_ptr<const DataSchema> run) {
  ASSIGN_OR_RETURN(
      DataSetRequest request,
      MakeDataSetRequest(spec, input_shape, seed, Split::kTrain, labels));
  request.run = std::move(run);
  ASSIGN_OR_RETURN(const DataSetType type, DataSetRegistry::Find(spec.type()));
  if (type.open_in_order == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.stream: input.type \"", spec.type(),
                     "\" cannot be read as a stream; ",
                     absl::StrJoin(StreamTypes(), " and "), " can"));
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<RowMapper> mapper,
      RowMapper::Create(spec, request.example_shape, input_shape, seed));
  ASSIGN_OR_RETURN(
      std::unique_ptr<PartsStream> stream,
      PartsStream::Open(type, request, num_classes, std::move(mapper)));
  RETURN_IF_ERROR(CheckFirstRow(spec.on_bad_record(), labels, stream.get()));
  stream->CloseRemarks();
  return stream;
}

}  // namespace muster
