#include "worker/input/file/csv_columns.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr int32_t kMaxExactInteger = 1 << 24;
constexpr size_t kShownBytes = 80;
constexpr size_t kShownColumns = 20;

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

}  // namespace

char CsvDelimiter(const std::string& path, const CsvOptions& options) {
  if (options.delimiter != '\0') return options.delimiter;
  // The name alone: ".gz" may follow the ending, and so may "-00000-of-00004".
  const absl::string_view name = absl::string_view(path).substr(
      path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
  return absl::StrContains(absl::AsciiStrToLower(name), ".tsv") ? '\t' : ',';
}

absl::StatusOr<float> ParseCsvNumber(CsvType type, absl::string_view text) {
  if (text.empty()) {
    return absl::InvalidArgumentError("wanted a value, found none");
  }
  return type == CsvType::kInteger ? ParseInteger(text) : ParseFloat(text);
}

absl::Status CsvColumns::TakeHeader(const CsvReader& reader) {
  std::vector<std::string> names = NamesOf(reader, options_.has_header);
  if (header_.empty()) {
    RETURN_IF_ERROR(CheckUnique(names, reader));
    header_ = std::move(names);
    return Choose(reader);
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

absl::Status CsvColumns::Choose(const CsvReader& reader) {
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
  }
  if (columns_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reading ", reader.Place(), ": wanted columns of values, found none"));
  }
  return absl::OkStatus();
}

std::vector<std::string> CsvColumns::ShownColumns(
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

bool CsvColumns::IsLabel(absl::string_view name) const {
  return absl::c_any_of(options_.labels, [name](const CsvColumn& column) {
    return column.name == name;
  });
}

absl::Status CsvColumns::CheckFields(const CsvReader& reader) const {
  if (reader.fields().size() == header_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("wanted ", header_.size(), " fields, as the ",
                   options_.has_header ? "header" : "first line",
                   " has, found ", reader.fields().size()));
}

absl::string_view CsvColumns::Field(const CsvReader& reader,
                                    size_t column) const {
  return absl::StripAsciiWhitespace(reader.fields()[fields_[column]]);
}

}  // namespace muster
