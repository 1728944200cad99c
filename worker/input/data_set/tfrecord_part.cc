#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/finite.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "worker/input/data_set/data_set_registry.h"
#include "worker/input/data_set/open_part.h"
#include "worker/input/file/bad_rows.h"
#include "worker/input/file/tf_example.h"
#include "worker/input/file/tf_record_file.h"
#include "worker/input/file/tf_record_reader.h"
#include "worker/input/image/image_decoder.h"

namespace muster {
namespace {

constexpr const char* kUsualFeatures[] = {"image", "image_raw", "features",
                                          "x"};

// Reads the next record, whose error makes it a bad one; false at the end.
using NextRecord =
    absl::FunctionRef<absl::StatusOr<bool>(std::string*, absl::Status* bad)>;

// The run's, or input.feature_column, or the first usual name that the example
// has.
std::string FeatureOf(const DataSetRequest& request, const TfExample& example) {
  if (!request.spec.feature_column().empty()) {
    return request.spec.feature_column();
  }
  if (request.run != nullptr && request.run->column_size() == 1) {
    return BytesOfUtf8(request.run->column(0).name());
  }
  for (const char* const name : kUsualFeatures) {
    if (example.Has(name)) return name;
  }
  return kUsualFeatures[0];
}

// The kind of bytes without a shape. Raw pixels may begin like an image file,
// which is seldom as long.
ColumnKind KindOf(const absl::StatusOr<TfExample::Values>& values,
                  const Shape& shape) {
  if (!values.ok()) return ColumnKind::kBytes;
  const auto* text = std::get_if<absl::string_view>(&*values);
  if (text == nullptr) return ColumnKind::kNumber;
  const absl::Span<const uint8_t> bytes(
      reinterpret_cast<const uint8_t*>(text->data()), text->size());
  return IsImageFile(bytes) &&
                 static_cast<int64_t>(bytes.size()) != shape.num_elements()
             ? ColumnKind::kImage
             : ColumnKind::kBytes;
}

std::vector<Column> ColumnsOf(const DataSetRequest& request,
                              const TfExample& example) {
  const std::string feature = FeatureOf(request, example);
  std::vector<Column> columns = {
      {feature, KindOf(example.Get(feature), request.example_shape),
       std::nullopt}};
  if (request.labels.kind == LabelKind::kNone) return columns;
  for (const std::string& label : LabelNames(request)) {
    columns.push_back({label,
                       request.labels.kind == LabelKind::kClass
                           ? ColumnKind::kInteger
                           : ColumnKind::kNumber,
                       std::nullopt});
  }
  if (request.labels.weighted && !request.spec.weight_column().empty()) {
    columns.push_back(
        {request.spec.weight_column(), ColumnKind::kNumber, std::nullopt});
  }
  return columns;
}

// The columns that the first good record shows: none if there is none.
absl::StatusOr<std::vector<Column>> FindColumns(const DataSetRequest& request,
                                                NextRecord next) {
  std::string record;
  TfExample example;
  while (true) {
    absl::Status bad;
    ASSIGN_OR_RETURN(const bool more, next(&record, &bad));
    if (!more) return std::vector<Column>();
    if (bad.ok()) bad = example.Parse(record);
    if (bad.ok()) bad = example.Get(FeatureOf(request, example)).status();
    if (bad.ok()) return ColumnsOf(request, example);
    if (request.spec.on_bad_record() != SKIP || !IsBadRecord(bad)) return bad;
  }
}

absl::Status CheckFinite(const std::string& name, const Cell& cell) {
  const auto* const numbers = std::get_if<absl::Span<const float>>(&cell);
  const int64_t at = numbers == nullptr ? -1 : FirstNonFinite(*numbers);
  if (at < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("feature '", name, "', number ", at,
                   ": wanted a finite number, found ", (*numbers)[at]));
}

absl::Status ParseExample(absl::Span<const Column> columns,
                          const Record& record, absl::Span<const size_t> wanted,
                          Row* into) {
  // A thread's own: nothing is allocated from row to row.
  thread_local TfExample example;
  RETURN_IF_ERROR(example.Parse(record.bytes));
  for (const size_t column : wanted) {
    ASSIGN_OR_RETURN(Cell cell, example.Get(columns[column].name));
    RETURN_IF_ERROR(CheckFinite(columns[column].name, cell));
    into->cells[column] = cell;
  }
  return absl::OkStatus();
}

// A file of tf.Examples, which are read as they are asked for.
class TfRecordPart : public Part {
 public:
  static absl::StatusOr<std::unique_ptr<Part>> Open(
      const DataSetRequest& request, const PartFiles& files,
      absl::Span<const Column> known) {
    ASSIGN_OR_RETURN(TfRecordFile file,
                     TfRecordFile::Open(files[0], request.progress.get()));
    std::vector<Column> columns(known.begin(), known.end());
    int64_t row = 0;
    const auto next = [&](std::string* record,
                          absl::Status* bad) -> absl::StatusOr<bool> {
      if (row == file.num_rows()) return false;
      *bad = file.Read(row++, record);
      return true;
    };
    if (columns.empty()) {
      absl::StatusOr<std::vector<Column>> found = FindColumns(request, next);
      if (!found.ok()) {
        return AtPlace(found.status(), file.Place(row - 1));
      }
      columns = *std::move(found);
    }
    return absl::WrapUnique(
        new TfRecordPart(files, std::move(columns), std::move(file)));
  }

  std::optional<int64_t> num_rows() const override { return file_.num_rows(); }
  absl::Status Read(int64_t row, absl::Span<const size_t> wanted,
                    Row* into) const override {
    thread_local Record record;
    RETURN_IF_ERROR(file_.Read(row, &record.bytes));
    return ParseExample(columns(), record, wanted, into);
  }
  std::string Place(int64_t row) const override { return file_.Place(row); }

 private:
  TfRecordPart(const PartFiles& files, std::vector<Column> columns,
               TfRecordFile file)
      : Part(files, std::move(columns)), file_(std::move(file)) {}

  const TfRecordFile file_;
};

// A file of tf.Examples, read from beginning to end.
class TfRecordStreamPart : public Part {
 public:
  static absl::StatusOr<std::unique_ptr<Part>> Open(
      const DataSetRequest& request, const PartFiles& files,
      absl::Span<const Column> known) {
    std::vector<Column> columns(known.begin(), known.end());
    if (columns.empty()) {
      ASSIGN_OR_RETURN(TfRecordReader first, TfRecordReader::Open(files[0]));
      int64_t read = 0;
      absl::StatusOr<std::vector<Column>> found =
          FindColumns(request, [&](std::string* record, absl::Status* bad) {
            ++read;
            return first.Next(record, bad);
          });
      if (!found.ok()) {
        return AtPlace(found.status(), absl::StrCat("record ", read - 1,
                                                    " of '", files[0], "'"));
      }
      columns = *std::move(found);
    }
    ASSIGN_OR_RETURN(TfRecordReader reader, TfRecordReader::Open(files[0]));
    return absl::WrapUnique(
        new TfRecordStreamPart(files, std::move(columns), std::move(reader)));
  }

  absl::StatusOr<bool> Next(Record* record) override {
    record->place = read_++;
    return reader_.Next(&record->bytes, &record->bad);
  }

 private:
  TfRecordStreamPart(const PartFiles& files, std::vector<Column> columns,
                     TfRecordReader reader)
      : Part(files, std::move(columns)), reader_(std::move(reader)) {}

  TfRecordReader reader_;
  int64_t read_ = 0;
};

DataSetType MakeType() {
  DataSetType type;
  type.help = "tf.Examples of train*.tfrecord and test*.tfrecord";
  type.names.endings = {".tfrecord", ".tfrecords", ".tfrec"};
  type.open = &TfRecordPart::Open;
  type.open_in_order = &TfRecordStreamPart::Open;
  type.parse = &ParseExample;
  type.place_name = "record";
  type.has_label_column = true;
  type.has_feature_column = true;
  type.has_targets = true;
  type.decodes = true;
  return type;
}

[[maybe_unused]] const bool kRegistered =
    DataSetRegistry::Register("tfrecord", MakeType());

}  // namespace
}  // namespace muster
