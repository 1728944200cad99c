#ifndef WORKER_INPUT_DATA_SET_PART_H_
#define WORKER_INPUT_DATA_SET_PART_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

// The kind of a column's values.
enum class ColumnKind {
  // float32.
  kNumber,
  // int64: a class, an id.
  kInteger,
  // A name, or a number that is written out.
  kText,
  // Unsigned bytes. In an example each becomes byte / 255.
  kBytes,
  // The bytes of a JPEG or PNG file.
  kImage,
};

// The values that each row has under one name.
struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::kNumber;
  // The shape of a row's values; [] is a single one. Absent: it differs from
  // row to row (a list), or the file does not say it.
  std::optional<std::vector<int64_t>> shape = std::vector<int64_t>();
  // The first dimension is the channels, whatever the model's shape is.
  bool channels_first = false;
  // kInteger: the values are in [0, num_classes). 0: the rows show them.
  int64_t num_classes = 0;
};

// The values of one column in one row; the memory is the part's, the Row's or
// the thread's.
using Cell = std::variant<absl::Span<const float>, absl::Span<const int64_t>,
                          absl::string_view>;

// The cells of one row, with memory that is used again for the next.
struct Row {
  // By column; those that were not wanted are of an earlier row.
  std::vector<Cell> cells;
  std::string bytes;
  std::vector<float> numbers;
  std::vector<int64_t> integers;
  // Memory for as many numbers, where they are wanted; empty: it is `numbers`.
  absl::Span<float> target;

  // Memory of `size` numbers, to be written.
  absl::Span<float> MakeNumbers(size_t size) {
    if (target.size() == size) return target;
    numbers.resize(size);
    return absl::MakeSpan(numbers);
  }
  // `size` bytes of memory, to be written.
  absl::Span<uint8_t> MakeBytes(int64_t size) {
    bytes.resize(static_cast<size_t>(size));
    return {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()};
  }
  // Makes `integer` the one value of a cell.
  Cell MakeInteger(int64_t integer) {
    integers.assign(1, integer);
    return absl::MakeConstSpan(integers);
  }
};

// A row as it stands in a file that is read in order.
struct Record {
  std::string bytes;
  // The line or record of the file.
  int64_t place = 0;
  // Why the row is damaged; it counts as a row all the same.
  absl::Status bad;
};

// One part of a data set, opened: a file, a pair of files, a folder. It yields
// typed columns row by row: at random if the number of its rows is known, else
// in order. Read is thread-safe, Next is not.
class Part {
 public:
  // `files`: the paths, the last one for messages.
  Part(std::vector<std::string> files, std::vector<Column> columns)
      : files_(std::move(files)), columns_(std::move(columns)) {}
  virtual ~Part() = default;

  // In the order of a row's cells. None: no row of this part shows them.
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::string>& files() const { return files_; }
  // Its name in messages.
  std::string name() const {
    return files_.empty() ? "the formula" : files_.back();
  }

  // Absent: not known, and rows come by Next alone.
  virtual std::optional<int64_t> num_rows() const { return std::nullopt; }

  // Reads the cells of the columns `wanted`. REQUIRES: 0 <= row < *num_rows().
  // Errors: those of the file, with its path ("reading ...") or without a
  // place; InvalidArgument and DataLoss say that the row is bad.
  virtual absl::Status Read(int64_t /*row*/,
                            absl::Span<const size_t> /*wanted*/,
                            Row* /*into*/) const {
    return absl::UnimplementedError("the rows are read in order");
  }

  // Reads the next row; false at the end. Errors: those after which there is no
  // next row (a file that is cut short), with the path.
  virtual absl::StatusOr<bool> Next(Record* /*record*/) {
    return absl::UnimplementedError("the rows are read at random");
  }

  // "row 3 of 'FILE'", for messages.
  virtual std::string Place(int64_t row) const {
    return absl::StrCat("row ", row, " of '", files_.back(), "'");
  }

  // A person's name for a row, such as an image's file; "" for its number.
  virtual std::string RowName(int64_t /*row*/) const { return ""; }

 private:
  const std::vector<std::string> files_;
  const std::vector<Column> columns_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_PART_H_
