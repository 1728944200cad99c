#include "worker/input/file/csv_table.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/file/class_names.h"
#include "worker/input/file/csv_reader.h"

namespace muster {
namespace {

// Reads files into rows.
class TableReader {
 public:
  explicit TableReader(const CsvTable::Options& options)
      : options_(options), columns_(options) {}

  absl::Status ReadFile(const std::string& path);

  // Gives the classes their indices, once all files are read.
  void Finish();

  // The labels are the last of the columns.
  std::vector<CsvColumn>& columns() { return columns_.columns(); }
  FloatRows& rows() { return *rows_; }
  FileRows& file_rows() { return file_rows_; }
  BadRows& bad_rows() { return bad_rows_; }

 private:
  // A row, good or bad.
  absl::Status TakeRow(const CsvReader& reader);
  absl::Status AddRow(const CsvReader& reader);
  absl::StatusOr<float> Parse(size_t column, absl::string_view text);

  const CsvTable::Options& options_;
  CsvColumns columns_;
  // By column, if it has classes.
  std::vector<ClassNames> classes_;
  std::vector<float> row_;
  std::optional<FloatRows> rows_;
  FileRows file_rows_;
  BadRows bad_rows_;
};

absl::Status TableReader::ReadFile(const std::string& path) {
  ASSIGN_OR_RETURN(CsvReader reader,
                   CsvReader::Open(path, CsvDelimiter(path, options_)));
  ASSIGN_OR_RETURN(bool more, reader.Next());
  if (!more) {
    return absl::InvalidArgumentError(
        absl::StrCat("reading '", path, "': wanted rows, found an empty file"));
  }
  RETURN_IF_ERROR(columns_.TakeHeader(reader));
  if (!rows_.has_value()) {
    for (const CsvColumn& column : columns()) {
      classes_.emplace_back(column.classes);
    }
    row_.resize(columns().size());
    rows_.emplace(static_cast<int64_t>(columns().size()));
  }
  if (options_.has_header) {
    ASSIGN_OR_RETURN(more, reader.Next());
  }
  const int64_t rows_before = rows_->num_rows();
  while (more) {
    RETURN_IF_ERROR(TakeRow(reader));
    ASSIGN_OR_RETURN(more, reader.Next());
  }
  file_rows_.Add(rows_->num_rows() - rows_before);
  return absl::OkStatus();
}

absl::Status TableReader::TakeRow(const CsvReader& reader) {
  const absl::Status status =
      Annotate(AddRow(reader), absl::StrCat("reading ", reader.Place()));
  if (status.ok() || !options_.keeps_bad_rows) return status;
  bad_rows_.Add(rows_->num_rows(), status);
  // Class 0 is there as soon as a row is good.
  absl::c_fill(row_, 0.0f);
  return rows_->Append(row_);
}

absl::Status TableReader::AddRow(const CsvReader& reader) {
  RETURN_IF_ERROR(columns_.CheckFields(reader));
  for (size_t i = 0; i < columns().size(); ++i) {
    absl::StatusOr<float> value = Parse(i, columns_.Field(reader, i));
    if (!value.ok()) {
      return Annotate(value.status(),
                      absl::StrCat("column '", columns()[i].name, "'"));
    }
    row_[i] = *value;
  }
  return rows_->Append(row_);
}

absl::StatusOr<float> TableReader::Parse(size_t column,
                                         absl::string_view text) {
  const CsvType type = columns()[column].type;
  if (type != CsvType::kClass || text.empty()) {
    return ParseCsvNumber(type, text);
  }
  ASSIGN_OR_RETURN(const int32_t number, classes_[column].Number(text));
  return static_cast<float>(number);
}

void TableReader::Finish() {
  for (size_t i = 0; i < columns().size(); ++i) {
    if (columns()[i].type != CsvType::kClass) continue;
    const std::vector<int32_t> indices = classes_[i].Indices();
    for (int64_t row = 0; row < rows_->num_rows(); ++row) {
      float& value = rows_->MutableRow(row)[i];
      value = static_cast<float>(indices[static_cast<size_t>(value)]);
    }
    columns()[i].classes = classes_[i].Names();
  }
}

}  // namespace

absl::StatusOr<CsvTable> CsvTable::Read(absl::Span<const std::string> paths,
                                        const Options& options) {
  if (paths.empty()) {
    return absl::InvalidArgumentError("reading a table: no file is named");
  }
  TableReader reader(options);
  for (const std::string& path : paths) RETURN_IF_ERROR(reader.ReadFile(path));
  if (reader.rows().num_rows() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reading '", paths[0], "': wanted rows, found only the header"));
  }
  if (const int64_t rows = reader.rows().num_rows();
      reader.bad_rows().size() == rows) {
    return AllBad(rows, reader.bad_rows().Check(rows - 1));
  }
  reader.Finish();
  std::vector<CsvColumn> columns = std::move(reader.columns());
  const auto first_label = columns.end() - options.labels.size();
  std::vector<CsvColumn> labels(first_label, columns.end());
  columns.erase(first_label, columns.end());
  return CsvTable(std::move(columns), std::move(labels),
                  std::move(reader.rows()), std::move(reader.file_rows()),
                  std::move(reader.bad_rows()), {paths.begin(), paths.end()});
}

CsvTable::CsvTable(std::vector<CsvColumn> columns,
                   std::vector<CsvColumn> labels, FloatRows rows,
                   FileRows file_rows, BadRows bad_rows,
                   std::vector<std::string> paths)
    : columns_(std::move(columns)),
      labels_(std::move(labels)),
      rows_(std::move(rows)),
      file_rows_(std::move(file_rows)),
      bad_rows_(std::move(bad_rows)),
      paths_(std::move(paths)) {}

void CsvTable::ReadRow(int64_t row, absl::Span<float> dst) const {
  std::copy_n(rows_.Row(row).begin(), columns_.size(), dst.begin());
}

std::string CsvTable::Place(int64_t row) const {
  const FileRows::Place place = file_rows_.Find(row);
  return absl::StrCat("row ", place.row, " of '", paths_[place.file], "'");
}

}  // namespace muster
