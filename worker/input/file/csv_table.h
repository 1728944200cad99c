#ifndef WORKER_INPUT_FILE_CSV_TABLE_H_
#define WORKER_INPUT_FILE_CSV_TABLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/input/file/bad_rows.h"
#include "worker/input/file/csv_columns.h"
#include "worker/input/file/file_rows.h"
#include "worker/input/file/float_rows.h"

namespace muster {

// The columns of CSV files that are wanted, in memory as float32.
// Immutable, thread-safe.
//   ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Read({"train.csv"}, {}));
//   table.ReadRow(7, absl::MakeSpan(example));
//   const int32_t label = static_cast<int32_t>(table.Labels(7)[0]);
class CsvTable {
 public:
  using Options = CsvOptions;

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

  // The error of a bad row, which has no values. REQUIRES: as ReadRow.
  absl::Status Check(int64_t row) const { return bad_rows_.Check(row); }

  const std::vector<std::string>& paths() const { return paths_; }

  // "row 3 of 'data.csv'", from 0, for messages.
  std::string Place(int64_t row) const;

 private:
  CsvTable(std::vector<CsvColumn> columns, std::vector<CsvColumn> labels,
           FloatRows rows, FileRows file_rows, BadRows bad_rows,
           std::vector<std::string> paths);

  std::vector<CsvColumn> columns_;
  std::vector<CsvColumn> labels_;
  // The labels are the last values.
  FloatRows rows_;
  FileRows file_rows_;
  BadRows bad_rows_;
  std::vector<std::string> paths_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_CSV_TABLE_H_
