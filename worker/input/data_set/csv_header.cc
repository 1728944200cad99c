#include "worker/input/data_set/csv_header.h"

#include <cstddef>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "worker/input/data_set/open_part.h"

namespace muster {
namespace {

constexpr size_t kShownBytes = 80;

using Names = std::vector<absl::string_view>;

template <typename... Parts>
absl::Status Refuse(const CsvReader& reader, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("reading ", reader.Place(), ": ", parts...));
}

bool IsNumber(absl::string_view name) {
  double number;
  return absl::SimpleAtod(name, &number);
}

bool HasAll(const Names& names, const std::vector<std::string>& wanted) {
  const absl::flat_hash_set<absl::string_view> found(names.begin(),
                                                     names.end());
  return absl::c_all_of(
      wanted, [&](const std::string& name) { return found.contains(name); });
}

// Another character that separates fields would leave one field of them all.
absl::Status CheckDelimiter(const CsvReader& reader, char delimiter) {
  if (reader.fields().size() > 1) return absl::OkStatus();
  const absl::string_view field = reader.fields()[0];
  for (const char other : {';', '\t', ',', '|'}) {
    if (other == delimiter || !absl::StrContains(field, other)) continue;
    return Refuse(
        reader, "wanted fields with ", delimiter == ',' ? "','" : "tabs",
        " between them, found '", EscapeForLog(field, kShownBytes),
        "': they are separated by ",
        other == '\t' ? "tabs" : absl::StrCat("'", std::string(1, other), "'"),
        "; files called .csv have ',' and those called .tsv tabs, so ",
        delimiter == ',' && other == '\t' ? "call it .tsv"
        : delimiter == '\t' && other == ','
            ? "call it .csv"
            : "write it anew (pandas: read_csv(sep=...), then to_csv())");
  }
  return absl::OkStatus();
}

// Numbers that pandas names columns by, 0, 1 and so on, or those of the run.
bool AreNames(const DataSetRequest& request, const Names& names,
              bool has_label) {
  std::vector<std::string> wanted;
  if (request.run != nullptr) {
    for (const DataColumn& column : request.run->column()) {
      wanted.push_back(column.name());
    }
  }
  if (!wanted.empty() && HasAll(names, wanted)) return true;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] != absl::StrCat(i)) return false;
  }
  return has_label;
}

// Refuses what looks like a row: numbers alone, or, without the label's column,
// as many of them as of names.
absl::Status CheckNames(const DataSetRequest& request, const CsvReader& reader,
                        const Names& names) {
  const std::vector<std::string> labels = LabelNames(request);
  const bool has_label = HasAll(names, labels);
  const size_t numbers = absl::c_count_if(names, IsNumber);
  const size_t texts = names.size() - numbers -
                       absl::c_count_if(names, [](absl::string_view name) {
                         return name.empty();
                       });
  const bool wants_label = request.labels.kind != LabelKind::kNone;
  const bool is_row = texts == 0 ? !AreNames(request, names, has_label)
                                 : wants_label && !has_label &&
                                       numbers >= names.size() - numbers;
  if (numbers == 0 || !is_row) return absl::OkStatus();
  return Refuse(
      reader, "wanted a header with the names of the columns, found '",
      EscapeForLog(absl::StrJoin(names, ","), kShownBytes), "': ", numbers,
      " of its ", names.size(), " fields are numbers",
      has_label ? ""
                : absl::StrCat(", and none is '", absl::StrJoin(labels, ","),
                               "', the label"),
      ". If it is a row, and the file has no header: --set=input.header=false; "
      "columns are then named by place, 0 to ",
      names.size() - 1, ", in input.label_column as well. If these are names: ",
      "--set=input.header=true");
}

// Each column has a name of its own.
absl::Status CheckEachName(const CsvReader& reader, const Names& names) {
  absl::flat_hash_map<absl::string_view, size_t> places;
  for (size_t i = 0; i < names.size(); ++i) {
    // What pandas calls a column without a name when it has read one.
    if (names[i].empty() || absl::StartsWith(names[i], "Unnamed: ")) {
      return Refuse(reader, "column ", i, " of 0 to ", names.size() - 1,
                    " has no name",
                    names[i].empty() ? "" : " but that of pandas",
                    ": name it, or leave it out (an index that pandas wrote: "
                    "to_csv(index=False))");
    }
    const auto added = places.try_emplace(names[i], i);
    if (added.second) continue;
    return Refuse(reader, "two columns are named '",
                  EscapeForLog(names[i], kShownBytes), "', ",
                  added.first->second, " and ", i, " of 0 to ",
                  names.size() - 1, ": give each a name of its own");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Column>> ReadCsvHeader(const DataSetRequest& request,
                                                  const CsvReader& reader,
                                                  char delimiter) {
  RETURN_IF_ERROR(CheckDelimiter(reader, delimiter));
  std::vector<Column> columns;
  if (HasNoHeader(request.spec)) {
    for (size_t i = 0; i < reader.fields().size(); ++i) {
      columns.push_back({absl::StrCat(i), ColumnKind::kText});
    }
    return columns;
  }
  Names names;
  for (const absl::string_view field : reader.fields()) {
    names.push_back(absl::StripAsciiWhitespace(field));
  }
  if (!request.spec.has_header()) {
    RETURN_IF_ERROR(CheckNames(request, reader, names));
  }
  RETURN_IF_ERROR(CheckEachName(reader, names));
  for (const absl::string_view name : names) {
    columns.push_back({std::string(name), ColumnKind::kText});
  }
  return columns;
}

}  // namespace muster
