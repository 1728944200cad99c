#ifndef WORKER_INPUT_FILE_CSV_TABLE_H_
#define WORKER_INPUT_FILE_CSV_TABLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/input/file/file_rows.h"
#include "worker/input/file/float_rows.h"

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

// The columns of CSV files that are wanted, in memory as float32.
// Immutable, thread-safe.
//   ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Read({"train.csv"}, {}));
//   table.ReadRow(7, absl::MakeSpan(example));
//   const int32_t label = static_cast<int32_t>(table.Labels(7)[0]);
class CsvTable {
 public:
  struct Options {
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
  };

  // Reads all `paths`, whose headers must be the same.
  // Errors: InvalidArgument (no files or rows; an unknown or repeated column;
  // with file and line: a missing field, a number of fields that is not the
  // header's, a value that is not of its column's type), CsvReader's.
  static absl::StatusOr<CsvTable> Read(absl::Span<const std::string> paths,
                                       const Options& options);

  int64_t num_rows() const { return rows_.num_rows(); }
  const std::vector<CsvColumn>& columns() const { return columns_; }
  const std::vector<CsvColumn>& labels() const { return labels_; }

  // Copies the values of columns() into `dst`.
  // REQUIRES: 0 <= row < num_rows(), dst.size() == columns().size().
  void ReadRow(int64_t row, absl::Span<float> dst) const;

  // The labels, or the indices of their classes. REQUIRES: as ReadRow.
  absl::Span<const float> Labels(int64_t row) const {
    return rows_.Row(row).subspan(columns_.size());
  }

  // "row 3 of 'data.csv'", from 0, for messages.
  std::string Place(int64_t row) const;

 private:
  CsvTable(std::vector<CsvColumn> columns, std::vector<CsvColumn> labels,
           FloatRows rows, FileRows file_rows, std::vector<std::string> paths);

  std::vector<CsvColumn> columns_;
  std::vector<CsvColumn> labels_;
  // The labels are the last values.
  FloatRows rows_;
  FileRows file_rows_;
  std::vector<std::string> paths_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_CSV_TABLE_H_
