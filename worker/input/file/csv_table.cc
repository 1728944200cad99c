#include "worker/input/file/csv_table.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "worker/input/file/class_names.h"
#include "worker/input/file/csv_reader.h"

namespace muster {
namespace {

constexpr int32_t kMaxExactInteger = 1 << 24;
constexpr size_t kShownBytes = 80;
constexpr size_t kShownColumns = 20;

char DelimiterOf(const std::string& path, const CsvTable::Options& options) {
  if (options.delimiter != '\0') return options.delimiter;
  // The name alone: ".gz" may follow the ending, and so may "-00000-of-00004".
  const absl::string_view name = absl::string_view(path).substr(
      path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  return absl::StrContains(absl::AsciiStrToLower(name), ".tsv") ? '\t' : ',';
}

absl::StatusOr<float> ParseFloat(absl::string_view text) {
  float value;
  if (absl::SimpleAtof(text, &value) && std::isfinite(value)) return value;
  return absl::InvalidArgumentError(absl::StrCat(
      "wanted a finite number, found '", EscapeForLog(text, kShownBytes), "'"));
}

absl::StatusOr<float> ParseInteger(absl::string_view text) {
  int32_t value;
  if (absl::SimpleAtoi(text, &value) && value >= -kMaxExactInteger &&
      value <= kMaxExactInteger) {
    return static_cast<float>(value);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "wanted an integer from -", kMaxExactInteger, " to ", kMaxExactInteger,
      ", found '", EscapeForLog(text, kShownBytes), "'"));
}

// The names of a file's columns.
std::vector<std::string> NamesOf(const CsvReader& reader, bool has_header) {
  std::vector<std::string> names;
  for (const absl::string_view field : reader.fields()) {
    names.push_back(has_header ? std::string(absl::StripAsciiWhitespace(field))
                               : absl::StrCat(names.size()));
  }
  return names;
}

absl::Status CheckUnique(const std::vector<std::string>& names,
                         const CsvReader& reader) {
  absl::flat_hash_set<absl::string_view> seen;
  for (const std::string& name : names) {
    if (seen.insert(name).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("reading ", reader.Place(), ": two columns are named '",
                     EscapeForLog(name, kShownBytes), "'"));
  }
  return absl::OkStatus();
}

// Reads files into rows.
class TableReader {
 public:
  explicit TableReader(const CsvTable::Options& options) : options_(options) {}

  absl::Status ReadFile(const std::string& path);

  // Gives the classes their indices, once all files are read.
  void Finish();

  // The labels are the last of the columns.
  std::vector<CsvColumn>& columns() { return columns_; }
  FloatRows& rows() { return *rows_; }
  FileRows& file_rows() { return file_rows_; }

 private:
  absl::Status TakeHeader(const CsvReader& reader);
  bool IsLabel(absl::string_view name) const {
    return absl::c_any_of(options_.labels, [name](const CsvColumn& column) {
      return column.name == name;
    });
  }
  absl::Status ChooseColumns(const CsvReader& reader);
  // As many of all columns as a message has room for, and the nearest.
  std::vector<std::string> ShownColumns(const std::string& wanted) const;
  absl::Status AddRow(const CsvReader& reader);
  absl::StatusOr<float> Parse(size_t column, absl::string_view text);

  const CsvTable::Options& options_;
  // The names of all columns, which every file has.
  std::vector<std::string> header_;
  std::vector<CsvColumn> columns_;
  // By column: its field, and its classes if it has them.
  std::vector<size_t> fields_;
  std::vector<ClassNames> classes_;
  std::vector<float> row_;
  std::optional<FloatRows> rows_;
  FileRows file_rows_;
};

absl::Status TableReader::ReadFile(const std::string& path) {
  ASSIGN_OR_RETURN(CsvReader reader,
                   CsvReader::Open(path, DelimiterOf(path, options_)));
  ASSIGN_OR_RETURN(bool more, reader.Next());
  if (!more) {
    return absl::InvalidArgumentError(
        absl::StrCat("reading '", path, "': wanted rows, found an empty file"));
  }
  RETURN_IF_ERROR(TakeHeader(reader));
  if (options_.has_header) {
    ASSIGN_OR_RETURN(more, reader.Next());
  }
  const int64_t rows_before = rows_->num_rows();
  while (more) {
    RETURN_IF_ERROR(
        Annotate(AddRow(reader), absl::StrCat("reading ", reader.Place())));
    ASSIGN_OR_RETURN(more, reader.Next());
  }
  file_rows_.Add(rows_->num_rows() - rows_before);
  return absl::OkStatus();
}

absl::Status TableReader::TakeHeader(const CsvReader& reader) {
  std::vector<std::string> names = NamesOf(reader, options_.has_header);
  if (header_.empty()) {
    RETURN_IF_ERROR(CheckUnique(names, reader));
    header_ = std::move(names);
    return ChooseColumns(reader);
  }
  if (names == header_) return absl::OkStatus();
  const size_t common = std::min(names.size(), header_.size());
  const size_t first =
      std::mismatch(names.begin(), names.begin() + common, header_.begin())
          .first -
      names.begin();
  return absl::InvalidArgumentError(
      absl::StrCat("reading ", reader.Place(), ": wanted the ", header_.size(),
                   " columns of the first file, found ", names.size(),
                   ", which differ from column ", first + 1, " on"));
}

absl::Status TableReader::ChooseColumns(const CsvReader& reader) {
  columns_ = options_.columns;
  if (columns_.empty()) {
    for (const std::string& name : header_) {
      if (IsLabel(name) || absl::c_linear_search(options_.ignored, name)) {
        continue;
      }
      columns_.push_back({name});
    }
  }
  absl::c_copy(options_.labels, std::back_inserter(columns_));
  for (const CsvColumn& column : columns_) {
    const auto found = std::find(header_.begin(), header_.end(), column.name);
    if (found == header_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "reading ", reader.Place(), ": ",
          UnknownNameMessage("column", column.name, ShownColumns(column.name)),
          IsLabel(column.name) ? "; input.label_column names that of the labels"
                               : ""));
    }
    fields_.push_back(found - header_.begin());
    classes_.emplace_back(column.classes);
  }
  if (columns_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reading ", reader.Place(), ": wanted columns of values, found none"));
  }
  row_.resize(columns_.size());
  rows_.emplace(static_cast<int64_t>(columns_.size()));
  return absl::OkStatus();
}

std::vector<std::string> TableReader::ShownColumns(
    const std::string& wanted) const {
  std::vector<std::string> shown(
      header_.begin(),
      header_.begin() + std::min(header_.size(), kShownColumns));
  const std::string nearest = NearestName(wanted, header_);
  if (!nearest.empty() && !absl::c_linear_search(shown, nearest)) {
    shown.push_back(nearest);
  }
  return shown;
}

absl::Status TableReader::AddRow(const CsvReader& reader) {
  if (reader.fields().size() != header_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("wanted ", header_.size(), " fields, as the ",
                     options_.has_header ? "header" : "first line",
                     " has, found ", reader.fields().size()));
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    absl::StatusOr<float> value =
        Parse(i, absl::StripAsciiWhitespace(reader.fields()[fields_[i]]));
    if (!value.ok()) {
      return Annotate(value.status(),
                      absl::StrCat("column '", columns_[i].name, "'"));
    }
    row_[i] = *value;
  }
  return rows_->Append(row_);
}

absl::StatusOr<float> TableReader::Parse(size_t column,
                                         absl::string_view text) {
  if (text.empty()) {
    return absl::InvalidArgumentError("wanted a value, found none");
  }
  switch (columns_[column].type) {
    case CsvType::kFloat:
      return ParseFloat(text);
    case CsvType::kInteger:
      return ParseInteger(text);
    case CsvType::kClass:
      break;
  }
  ASSIGN_OR_RETURN(const int32_t number, classes_[column].Number(text));
  return static_cast<float>(number);
}

void TableReader::Finish() {
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].type != CsvType::kClass) continue;
    const std::vector<int32_t> indices = classes_[i].Indices();
    for (int64_t row = 0; row < rows_->num_rows(); ++row) {
      float& value = rows_->MutableRow(row)[i];
      value = static_cast<float>(indices[static_cast<size_t>(value)]);
    }
    columns_[i].classes = classes_[i].Names();
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
  reader.Finish();
  std::vector<CsvColumn> columns = std::move(reader.columns());
  const auto first_label = columns.end() - options.labels.size();
  std::vector<CsvColumn> labels(first_label, columns.end());
  columns.erase(first_label, columns.end());
  return CsvTable(std::move(columns), std::move(labels),
                  std::move(reader.rows()), std::move(reader.file_rows()),
                  {paths.begin(), paths.end()});
}

CsvTable::CsvTable(std::vector<CsvColumn> columns,
                   std::vector<CsvColumn> labels, FloatRows rows,
                   FileRows file_rows, std::vector<std::string> paths)
    : columns_(std::move(columns)),
      labels_(std::move(labels)),
      rows_(std::move(rows)),
      file_rows_(std::move(file_rows)),
      paths_(std::move(paths)) {}

void CsvTable::ReadRow(int64_t row, absl::Span<float> dst) const {
  std::copy_n(rows_.Row(row).begin(), columns_.size(), dst.begin());
}

std::string CsvTable::Place(int64_t row) const {
  const FileRows::Place place = file_rows_.Find(row);
  return absl::StrCat("row ", place.row, " of '", paths_[place.file], "'");
}

}  // namespace muster
