#include "worker/input/data_set/example_columns.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "worker/input/data_set/data_schema.h"
#include "worker/input/data_set/open_part.h"

namespace muster {
namespace {

constexpr int32_t kMaxExactInteger = 1 << 24;
constexpr size_t kShownBytes = 80;

absl::Status Wanted(absl::string_view wanted, absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat(
      "wanted ", wanted, ", found ",
      found.empty()
          ? "none"
          : absl::StrCat("'", EscapeForLog(found, kShownBytes), "'")));
}

absl::Status ParseFloat(absl::string_view text, float* value) {
  if (absl::SimpleAtof(text, value) && std::isfinite(*value)) {
    return absl::OkStatus();
  }
  return Wanted("a finite number", text);
}

absl::StatusOr<int32_t> ParseInteger(absl::string_view text) {
  int32_t value;
  if (absl::SimpleAtoi(text, &value) && value >= -kMaxExactInteger &&
      value <= kMaxExactInteger) {
    return value;
  }
  return Wanted(absl::StrCat("an integer from -", kMaxExactInteger, " to ",
                             kMaxExactInteger),
                text);
}

absl::StatusOr<int32_t> CheckClass(int64_t found) {
  if (found >= 0 && found < ClassNames::kMaxClasses) {
    return static_cast<int32_t>(found);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a label must be a class from 0 to ",
                   ClassNames::kMaxClasses - 1, ", found ", found));
}

absl::Status WantedCount(int64_t wanted, int64_t found, const char* what) {
  if (found == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("wanted ", wanted, " ", what, ", found ", found));
}

// Absent: not known.
std::optional<int64_t> CountOf(const Column& column) {
  if (!column.shape.has_value()) return std::nullopt;
  int64_t count = 1;
  for (const int64_t dim : *column.shape) count *= dim;
  return count;
}

// Whether an example of shape `found` has its channels last: [H, W, C], where
// the model reads [C, H, W].
bool HasChannelsLast(const std::vector<int64_t>& found, const Shape& wanted) {
  return wanted.rank() == 3 &&
         found == std::vector<int64_t>{wanted.dim(1), wanted.dim(2),
                                       wanted.dim(0)} &&
         found !=
             std::vector<int64_t>{wanted.dim(0), wanted.dim(1), wanted.dim(2)};
}

// Copies [H, W, C] to [C, H, W], which is `shape`, and divides by `divisor`.
template <typename T>
void ToChannelsFirst(const T* src, const Shape& shape, float divisor,
                     float* dst) {
  const int64_t channels = shape.dim(0);
  const int64_t pixels = shape.dim(1) * shape.dim(2);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t p = 0; p < pixels; ++p) {
      *dst++ = static_cast<float>(src[p * channels + c]) / divisor;
    }
  }
}

// Writes each byte as byte / 255. Runs of a constant length become vector
// instructions, at -O2 of no other loop.
void ScaleBytes(const uint8_t* __restrict src, size_t size,
                float* __restrict dst) {
  constexpr size_t kRun = 16;
  size_t i = 0;
  for (; i + kRun <= size; i += kRun) {
    for (size_t j = 0; j < kRun; ++j) {
      dst[i + j] = static_cast<float>(src[i + j]) / 255.0f;
    }
  }
  for (; i < size; ++i) dst[i] = static_cast<float>(src[i]) / 255.0f;
}

// Writes the `count` numbers of a cell as they stand.
absl::Status ReadNumbers(const Cell& cell, ColumnKind kind, int64_t count,
                         float* dst) {
  if (const auto* numbers = std::get_if<absl::Span<const float>>(&cell)) {
    RETURN_IF_ERROR(WantedCount(count, numbers->size(), "numbers"));
    absl::c_copy(*numbers, dst);
    return absl::OkStatus();
  }
  if (const auto* integers = std::get_if<absl::Span<const int64_t>>(&cell)) {
    RETURN_IF_ERROR(WantedCount(count, integers->size(), "numbers"));
    for (const int64_t value : *integers) *dst++ = static_cast<float>(value);
    return absl::OkStatus();
  }
  if (kind == ColumnKind::kText) {
    return ParseFloat(std::get<absl::string_view>(cell), dst);
  }
  return absl::InvalidArgumentError("wanted numbers, found bytes");
}

// The names of columns, as a schema has them.
google::protobuf::RepeatedPtrField<std::string> NamesOf(
    const std::vector<Column>& columns) {
  google::protobuf::RepeatedPtrField<std::string> names;
  for (const Column& column : columns) *names.Add() = Utf8OfBytes(column.name);
  return names;
}

// A text among values is a number that is written out.
const char* KindName(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kInteger:
      return "integer";
    case ColumnKind::kBytes:
      return "bytes";
    case ColumnKind::kImage:
      return "image";
    case ColumnKind::kNumber:
    case ColumnKind::kText:
      break;
  }
  return "number";
}

// An image has the shape to which it is decoded.
DataColumn DescribeColumn(const Column& column, const Shape& example_shape) {
  DataColumn described;
  described.set_name(Utf8OfBytes(column.name));
  described.set_kind(KindName(column.kind));
  if (column.kind == ColumnKind::kImage) {
    for (int i = 0; i < example_shape.rank(); ++i) {
      described.add_shape(example_shape.dim(i));
    }
  } else if (column.shape.has_value()) {
    described.mutable_shape()->Add(column.shape->begin(), column.shape->end());
  } else {
    described.set_any_shape(true);
  }
  return described;
}

// Whether the last column of labels is that of the rows' weights.
bool HasWeightColumn(const DataSetRequest& request) {
  return request.labels.weighted && !request.spec.weight_column().empty();
}

// The place of a column of the run. `places`: by name. Errors: InvalidArgument.
absl::StatusOr<size_t> FindColumn(
    const std::vector<Column>& columns, const Shape& example_shape,
    const absl::flat_hash_map<std::string, size_t>& places,
    const DataColumn& wanted, absl::string_view owner) {
  const auto found = places.find(wanted.name());
  if (found == places.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("it lacks the column '", ShownName(wanted.name()), "' of ",
                     owner, "; ", OfferNames(wanted.name(), NamesOf(columns)),
                     "; columns go by their names, whatever their order"));
  }
  RETURN_IF_ERROR(CheckColumnChange(
      wanted, DescribeColumn(columns[found->second], example_shape)));
  return found->second;
}

}  // namespace

absl::StatusOr<ExampleColumns> ExampleColumns::Create(
    const DataSetRequest& request, const Part& part, absl::string_view owner) {
  ExampleColumns columns(request, part);
  RETURN_IF_ERROR(columns.FindLabels(request, part, owner));
  RETURN_IF_ERROR(columns.FindValues(request, part, owner));
  RETURN_IF_ERROR(columns.CheckLabels(request, part));
  RETURN_IF_ERROR(columns.FitValues(request, part));
  if (!columns.image_.has_value() && request.spec.decode() != FULL) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.decode: ", ImageDecode_Name(request.spec.decode()),
                     " means nothing to '", part.files().back(),
                     "', which has no image files: leave it out"));
  }
  columns.all_ = columns.values_;
  absl::c_copy(columns.labels_, std::back_inserter(columns.all_));
  if (columns.weight_.has_value()) columns.all_.push_back(*columns.weight_);
  return columns;
}

ExampleColumns ExampleColumns::OfTable(const DataSetRequest& request,
                                       const Part& part) {
  ExampleColumns columns(request, part);
  columns.all_.resize(columns.columns_.size());
  absl::c_iota(columns.all_, size_t{0});
  columns.values_ = {0};
  columns.labels_.assign(columns.all_.begin() + 1, columns.all_.end());
  columns.SplitWeight(request);
  columns.counts_ = {columns.shape_.num_elements()};
  return columns;
}

ExampleColumns::ExampleColumns(const DataSetRequest& request, const Part& part)
    : columns_(part.columns()),
      shape_(request.example_shape),
      num_targets_(request.labels.num_targets) {}

void ExampleColumns::Describe(DataSchema* schema) const {
  for (const size_t value : values_) {
    *schema->add_column() = DescribeColumn(columns_[value], shape_);
  }
  DataLabel& label = *schema->mutable_label();
  for (const size_t column : labels_) {
    label.add_column(Utf8OfBytes(columns_[column].name));
    label.set_num_classes(columns_[column].num_classes);
  }
}

absl::Status ExampleColumns::FindValues(const DataSetRequest& request,
                                        const Part& part,
                                        absl::string_view owner) {
  const std::vector<std::string> names = LabelNames(request);
  absl::flat_hash_set<std::string> labels(names.begin(), names.end());
  labels.insert(request.spec.weight_column());
  const bool has_run = request.run != nullptr && !request.run->column().empty();
  std::vector<size_t> others;
  absl::flat_hash_map<std::string, size_t> places;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!labels.contains(columns_[i].name)) others.push_back(i);
    if (has_run) places.emplace(Utf8OfBytes(columns_[i].name), i);
  }
  if (!has_run) {
    values_ = std::move(others);
    return absl::OkStatus();
  }
  for (const DataColumn& wanted : request.run->column()) {
    const absl::StatusOr<size_t> place =
        FindColumn(columns_, shape_, places, wanted, owner);
    if (!place.ok()) {
      return Annotate(place.status(),
                      absl::StrCat("opening a data set: '", part.name(), "'"));
    }
    values_.push_back(*place);
  }
  const absl::flat_hash_set<size_t> used(values_.begin(), values_.end());
  absl::c_copy_if(others, std::back_inserter(left_out_),
                  [&](size_t i) { return !used.contains(i); });
  return absl::OkStatus();
}

absl::Status ExampleColumns::FindLabels(const DataSetRequest& request,
                                        const Part& part,
                                        absl::string_view owner) {
  if (request.labels.kind == LabelKind::kNone) return absl::OkStatus();
  absl::flat_hash_map<absl::string_view, size_t> places;
  for (size_t i = 0; i < columns_.size(); ++i) {
    places.emplace(columns_[i].name, i);
  }
  const int64_t classes =
      request.run == nullptr ? 0 : request.run->label().num_classes();
  std::vector<std::string> names = LabelNames(request);
  if (HasWeightColumn(request)) names.push_back(request.spec.weight_column());
  for (const std::string& name : names) {
    const auto found = places.find(name);
    if (found == places.end()) {
      const bool is_label = name != request.spec.weight_column();
      return absl::InvalidArgumentError(absl::StrCat(
          "opening a data set: '", part.name(), "': unknown column '",
          ShownName(name), "'; ", OfferNames(name, NamesOf(columns_)),
          is_label ? "; input.label_column names that of the labels"
                   : "; input.weight_column names that of the weights"));
    }
    labels_.push_back(found->second);
    const int64_t declared = columns_[found->second].num_classes;
    if (declared == 0 || classes == 0 || declared == classes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "opening a data set: '", part.name(), "' has ", declared, " classes, ",
        owner, " has ", classes, "; keep them in two folders"));
  }
  SplitWeight(request);
  return absl::OkStatus();
}

void ExampleColumns::SplitWeight(const DataSetRequest& request) {
  if (!HasWeightColumn(request)) return;
  weight_ = labels_.back();
  labels_.pop_back();
}

absl::Status ExampleColumns::CheckLabels(const DataSetRequest& request,
                                         const Part& part) const {
  const bool are_targets = request.labels.kind == LabelKind::kTargets;
  int64_t count = 0;
  for (const size_t label : labels_) {
    const std::optional<int64_t> known = CountOf(columns_[label]);
    if (!known.has_value()) return absl::OkStatus();
    count += *known;
  }
  const int64_t wanted = are_targets ? num_targets_ : 1;
  if (count == wanted || labels_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "opening a data set: ",
      are_targets ? absl::StrCat("the model's loss compares ", num_targets_,
                                 " outputs, ")
                  : "",
      "wanted ", wanted, " value(s) in the label of a row, found ", count,
      " in '", part.files().back(), "' (",
      absl::StrJoin(LabelNames(request), ", "), ")",
      are_targets && columns_[labels_[0]].kind == ColumnKind::kText
          ? "; input.label_column names as many columns, separated by commas"
          : ""));
}

absl::Status ExampleColumns::FitValues(const DataSetRequest& request,
                                       const Part& part) {
  // A column without a shape, of several, has one value.
  for (const size_t value : values_) {
    counts_.push_back(CountOf(columns_[value]).value_or(1));
  }
  std::vector<int64_t> found = {
      std::accumulate(counts_.begin(), counts_.end(), int64_t{0})};
  if (values_.size() == 1) {
    counts_ = {shape_.num_elements()};
    const Column& column = columns_[values_[0]];
    if (column.kind == ColumnKind::kImage) {
      ASSIGN_OR_RETURN(image_, ExampleImage::Create(shape_, request.spec));
      return absl::OkStatus();
    }
    if (!column.shape.has_value()) return absl::OkStatus();
  }
  const int64_t count = found[0];
  if (values_.size() == 1) found = *columns_[values_[0]].shape;
  if (count == shape_.num_elements()) {
    turns_channels_ = values_.size() == 1 &&
                      !columns_[values_[0]].channels_first &&
                      HasChannelsLast(found, shape_);
    return absl::OkStatus();
  }
  const std::string text = absl::StrJoin(found, ", ");
  const absl::string_view field =
      request.spec.shape().empty() ? "model.input_shape" : "input.shape";
  return absl::InvalidArgumentError(absl::StrCat(
      "opening a data set: ", field, " is ", shape_.ToString(),
      ", the examples of '", part.files().front(), "' are [", text, "]",
      values_.size() == 1 ? "" : " (all columns but the labels)", "; set ",
      field, " to ",
      found.size() == 2 ? absl::StrCat("[1, ", text, "]")
                        : absl::StrCat("[", text.empty() ? "1" : text, "]"),
      ", or let the model read other data"));
}

bool ExampleColumns::has_texts() const {
  return labels_.size() == 1 && columns_[labels_[0]].kind == ColumnKind::kText;
}

absl::Status ExampleColumns::ReadValues(const Row& row, float* dst) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    const size_t column = values_[i];
    const int64_t count = counts_[i];
    const absl::Status status = ReadCell(column, row.cells[column], count, dst);
    if (!status.ok()) {
      return Annotate(status,
                      absl::StrCat("column '", columns_[column].name, "'"));
    }
    dst += count;
  }
  return absl::OkStatus();
}

absl::Status ExampleColumns::ReadCell(size_t column, const Cell& cell,
                                      int64_t count, float* dst) const {
  const auto* numbers = std::get_if<absl::Span<const float>>(&cell);
  if (numbers != nullptr && !turns_channels_ &&
      static_cast<int64_t>(numbers->size()) == count) {
    if (numbers->data() != dst) {
      std::memcpy(dst, numbers->data(), count * sizeof(float));
    }
    return absl::OkStatus();
  }
  const ColumnKind kind = columns_[column].kind;
  const auto* text = std::get_if<absl::string_view>(&cell);
  if (text != nullptr && kind != ColumnKind::kText) {
    const absl::Span<const uint8_t> bytes(
        reinterpret_cast<const uint8_t*>(text->data()), text->size());
    if (kind == ColumnKind::kImage) return image_->Decode(bytes, dst);
    // Raw pixels without a shape have their channels last, as TensorFlow's.
    const bool turns = columns_[column].shape.has_value() ? turns_channels_
                                                          : shape_.rank() == 3;
    return ReadBytes(bytes, count, turns, dst);
  }
  if (!turns_channels_ || numbers == nullptr) {
    return ReadNumbers(cell, kind, count, dst);
  }
  RETURN_IF_ERROR(WantedCount(count, numbers->size(), "numbers"));
  ToChannelsFirst(numbers->data(), shape_, 1.0f, dst);
  return absl::OkStatus();
}

absl::Status ExampleColumns::ReadBytes(absl::Span<const uint8_t> bytes,
                                       int64_t count, bool turns,
                                       float* dst) const {
  if (static_cast<int64_t>(bytes.size()) != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "wanted the ", count, " bytes of an example of model.input_shape ",
        shape_.ToString(), ", found ", bytes.size()));
  }
  if (turns) {
    ToChannelsFirst(bytes.data(), shape_, 255.0f, dst);
    return absl::OkStatus();
  }
  ScaleBytes(bytes.data(), bytes.size(), dst);
  return absl::OkStatus();
}

absl::StatusOr<int32_t> ExampleColumns::ReadClass(
    const Row& row, const ClassNames* names) const {
  const Cell& cell = row.cells[labels_[0]];
  const auto read = [&]() -> absl::StatusOr<int32_t> {
    if (has_texts()) {
      if (names != nullptr) return names->Find(ClassText(row));
      ASSIGN_OR_RETURN(const int32_t number, ParseInteger(ClassText(row)));
      return CheckClass(number);
    }
    const auto* integers = std::get_if<absl::Span<const int64_t>>(&cell);
    if (integers == nullptr) {
      return absl::InvalidArgumentError("wanted an integer, found others");
    }
    RETURN_IF_ERROR(WantedCount(1, integers->size(), "integer"));
    return CheckClass(integers->front());
  };
  absl::StatusOr<int32_t> label = read();
  if (label.ok()) return label;
  return Annotate(label.status(),
                  absl::StrCat("column '", columns_[labels_[0]].name, "'"));
}

absl::Status ExampleColumns::ReadTargets(const Row& row, float* dst) const {
  int64_t left = num_targets_;
  for (const size_t column : labels_) {
    const Cell& cell = row.cells[column];
    const int64_t count =
        labels_.size() == 1 ? left : CountOf(columns_[column]).value_or(1);
    absl::Status status = ReadNumbers(cell, columns_[column].kind, count, dst);
    for (int64_t i = 0; i < count && status.ok(); ++i) {
      if (std::isfinite(dst[i])) continue;
      status = absl::InvalidArgumentError(
          absl::StrCat("a target must be a finite number, found ", dst[i]));
    }
    if (!status.ok()) {
      return Annotate(status,
                      absl::StrCat("column '", columns_[column].name, "'"));
    }
    dst += count;
    left -= count;
  }
  return absl::OkStatus();
}

absl::Status ExampleColumns::ReadWeight(const Row& row, float* dst) const {
  *dst = 1;
  if (!weight_.has_value()) return absl::OkStatus();
  const Column& column = columns_[*weight_];
  absl::Status status = ReadNumbers(row.cells[*weight_], column.kind, 1, dst);
  if (status.ok() && !(*dst >= 0 && std::isfinite(*dst))) {
    status = absl::InvalidArgumentError(absl::StrCat(
        "a weight must be a finite number of 0 or more, found ", *dst));
  }
  if (status.ok()) return status;
  return Annotate(status, absl::StrCat("column '", column.name, "'"));
}

}  // namespace muster
