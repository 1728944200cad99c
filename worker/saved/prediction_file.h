#ifndef WORKER_SAVED_PREDICTION_FILE_H_
#define WORKER_SAVED_PREDICTION_FILE_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

// The predictions of a data set, row by row, in a file: CSV with a header, a
// JSON object a line, or an array of NumPy's, by the name's ending (.csv,
// .jsonl, .npy). It has its name only when all is written.
class PredictionFile {
 public:
  // The parts of a row.
  struct Columns {
    // The rows have names.
    bool has_names = false;
    bool has_class = false;
    // By class; empty: classes are numbers.
    std::vector<std::string> class_names;
    // "probability" or "output": the numbers of a row.
    std::string number_name;
    int64_t num_numbers = 0;
    int64_t num_rows = 0;
  };
  struct Row {
    std::string name;
    int64_t class_index = 0;
    absl::Span<const float> numbers;
    // A row that could not be read has its place all the same, so that the
    // others keep theirs: class and numbers are empty in CSV, null in JSON, NaN
    // or the class -1 in NumPy's array.
    bool is_bad = false;
  };

  // Removes what a PredictionFile of this path has written, if it has not
  // finished; for the end of the process, from any thread.
  static void RemoveUnfinished(const std::string& path);

  // Errors: InvalidArgument for another ending; the system's, with the path.
  static absl::StatusOr<std::unique_ptr<PredictionFile>> Create(
      const std::string& path, const Columns& columns);
  virtual ~PredictionFile();

  PredictionFile(const PredictionFile&) = delete;
  PredictionFile& operator=(const PredictionFile&) = delete;

  absl::Status Add(const Row& row) { return Write(Text(row)); }
  // After the last row: gives the file its name. Errors: the system's.
  absl::Status Finish();

 protected:
  PredictionFile(std::string path, const Columns& columns)
      : path_(std::move(path)), columns_(columns) {}

  const Columns& columns() const { return columns_; }
  // The class of a row, as `columns` name it.
  std::string ClassOf(const Row& row) const;

 private:
  // The bytes before the rows, and those of a row.
  virtual std::string Header() const = 0;
  virtual std::string Text(const Row& row) const = 0;

  absl::Status Open();
  absl::Status Write(const std::string& text);
  absl::Status SystemError(const char* what) const;

  const std::string path_;
  const Columns columns_;
  std::FILE* file_ = nullptr;
};

}  // namespace muster

#endif  // WORKER_SAVED_PREDICTION_FILE_H_
