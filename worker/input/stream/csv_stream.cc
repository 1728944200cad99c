#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/csv_labels.h"
#include "worker/input/data_set/example_layout.h"
#include "worker/input/file/csv_columns.h"
#include "worker/input/file/csv_reader.h"
#include "worker/input/stream/stream_format.h"

namespace muster {
namespace {

// Behind each field in StreamRecord::bytes. No number has it.
constexpr char kFieldEnd = '\0';

// For a class that is no number.
absl::Status WithAdvice(const absl::Status& error) {
  return absl::Status(
      error.code(),
      absl::StrCat(error.message(),
                   "; the classes of a stream are numbers, because their names "
                   "are not known before all rows are: write numbers, or leave "
                   "input.stream out"));
}

// CSV and TSV files: numbers, and a label that is a number, too. Names of
// classes have no indices before all are known.
class CsvStream : public StreamFormat {
 public:
  static absl::StatusOr<std::unique_ptr<StreamFormat>> Create(
      const DataSetRequest& request);

  absl::Status Open(const std::string& path) override;
  absl::StatusOr<bool> Next(StreamRecord* record) override;
  absl::string_view place_name() const override { return "line"; }
  absl::Status Decode(const StreamRecord& record,
                      const ExampleMemory& into) const override;

 private:
  CsvStream(CsvOptions options, Shape example_shape)
      : options_(std::move(options)),
        example_shape_(std::move(example_shape)),
        columns_(options_) {}

  size_t num_values() const {
    return columns_.columns().size() - options_.labels.size();
  }

  const CsvOptions options_;
  const Shape example_shape_;
  CsvColumns columns_;
  std::optional<CsvReader> reader_;
};

absl::StatusOr<std::unique_ptr<StreamFormat>> CsvStream::Create(
    const DataSetRequest& request) {
  CsvOptions options;
  if (request.labels.kind == LabelKind::kTargets) {
    ASSIGN_OR_RETURN(options.labels, CsvTargetColumns(request));
  } else {
    options.labels = {{CsvLabelColumn(request.spec), CsvType::kInteger}};
  }
  return std::unique_ptr<StreamFormat>(
      new CsvStream(std::move(options), request.example_shape));
}

absl::Status CsvStream::Open(const std::string& path) {
  ASSIGN_OR_RETURN(CsvReader reader,
                   CsvReader::Open(path, CsvDelimiter(path, options_)));
  reader_.emplace(std::move(reader));
  ASSIGN_OR_RETURN(const bool more, reader_->Next());
  if (!more) {
    return absl::InvalidArgumentError(
        absl::StrCat("reading '", path, "': wanted rows, found an empty file"));
  }
  RETURN_IF_ERROR(columns_.TakeHeader(*reader_));
  return FitExample({static_cast<int64_t>(num_values())}, example_shape_,
                    absl::StrCat("'", path, "' (all columns but the labels)"))
      .status();
}

absl::StatusOr<bool> CsvStream::Next(StreamRecord* record) {
  ASSIGN_OR_RETURN(const bool more, reader_->Next());
  if (!more) return false;
  record->place = reader_->line();
  record->bytes.clear();
  record->bad = columns_.CheckFields(*reader_);
  if (!record->bad.ok()) return true;
  for (size_t i = 0; i < columns_.columns().size(); ++i) {
    const absl::string_view field = columns_.Field(*reader_, i);
    record->bytes.append(field.data(), field.size());
    record->bytes.push_back(kFieldEnd);
  }
  return true;
}

absl::Status CsvStream::Decode(const StreamRecord& record,
                               const ExampleMemory& into) const {
  const std::vector<CsvColumn>& columns = columns_.columns();
  absl::string_view rest = record.bytes;
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool is_label = i >= num_values();
    if (is_label && into.label == nullptr && into.targets == nullptr) break;
    const size_t end = std::min(rest.find(kFieldEnd), rest.size());
    const absl::StatusOr<float> value =
        ParseCsvNumber(columns[i].type, rest.substr(0, end));
    if (!value.ok()) {
      const absl::Status error = Annotate(
          value.status(), absl::StrCat("column '", columns[i].name, "'"));
      return is_label && into.label != nullptr ? WithAdvice(error) : error;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!is_label) {
      into.values[i] = *value;
    } else if (into.targets != nullptr) {
      into.targets[i - num_values()] = *value;
    } else {
      *into.label = static_cast<int32_t>(*value);
    }
  }
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered =
    StreamRegistry::Register("csv", {{".csv", ".tsv"}, &CsvStream::Create});

}  // namespace
}  // namespace muster
