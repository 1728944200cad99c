#ifndef WORKER_INPUT_FILE_CSV_COLUMNS_H_
#define WORKER_INPUT_FILE_CSV_COLUMNS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/input/file/csv_reader.h"

namespace muster {

enum class CsvType {
  // A finite number, kept as float32.
  kFloat,
  // A whole number that float32 has exactly: at most 2^24 in magnitude.
  kInteger,
  // A class by name or by index: see ClassNames.
  kClass,
};

struct CsvColumn {
  std::string name;
  CsvType type = CsvType::kFloat;
  // For kClass, by index. Those wanted, if there are any; in a table, those
  // found, and none if the file has indices.
  std::vector<std::string> classes = {};
};

// Which columns of CSV files are read, and how.
struct CsvOptions {
  // '\0': a tab if a name ends in ".tsv" or ".tsv.gz", else a comma.
  char delimiter = '\0';
  // Without, columns are named "0", "1", ...
  bool has_header = true;
  // Those of a row, in this order. None: all but the labels and `ignored`, as
  // numbers.
  std::vector<CsvColumn> columns;
  std::vector<CsvColumn> labels = {{"label", CsvType::kClass}};
  // Columns that need not be there.
  std::vector<std::string> ignored = {};
  // A row with a field too many or too few, or with a value that is not of
  // its column's type, is a bad row of the table, not an error.
  bool keeps_bad_rows = false;
};

// The delimiter of the file `path`.
char CsvDelimiter(const std::string& path, const CsvOptions& options);

// Parses a field without white space around it. REQUIRES: a type of numbers.
// Errors: InvalidArgument (none, or not of the type).
absl::StatusOr<float> ParseCsvNumber(CsvType type, absl::string_view text);

// The columns that are read, and their fields in each record.
class CsvColumns {
 public:
  // `options` outlive it.
  explicit CsvColumns(const CsvOptions& options) : options_(options) {}

  // Takes the first record of a file: that of the first file chooses the
  // columns, those of the others must be the same. Errors: InvalidArgument with
  // the place (an unknown or repeated column, another header).
  absl::Status TakeHeader(const CsvReader& reader);

  // The labels are the last.
  std::vector<CsvColumn>& columns() { return columns_; }
  const std::vector<CsvColumn>& columns() const { return columns_; }

  // Errors, without the place: InvalidArgument (fewer fields than the header,
  // or more).
  absl::Status CheckFields(const CsvReader& reader) const;
  // A column's field, without white space around it. REQUIRES: CheckFields.
  absl::string_view Field(const CsvReader& reader, size_t column) const;

 private:
  bool IsLabel(absl::string_view name) const;
  absl::Status Choose(const CsvReader& reader);
  // As many of all columns as a message has room for, and the nearest.
  std::vector<std::string> ShownColumns(const std::string& wanted) const;

  const CsvOptions& options_;
  // The names of all columns, which every file has.
  std::vector<std::string> header_;
  std::vector<CsvColumn> columns_;
  // By column.
  std::vector<size_t> fields_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_CSV_COLUMNS_H_
