#ifndef WORKER_INPUT_FILE_BAD_ROWS_H_
#define WORKER_INPUT_FILE_BAD_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

// Does this error of reading say that the row is damaged, or not as wanted? Not
// if its file cannot be read.
inline bool IsBadRecord(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsInvalidArgument(status);
}

// So many bad rows one after the other mean that not the rows are bad, but that
// the data are not what the training takes them for.
inline constexpr int64_t kMostBadInARow = 1000;

// The error after so many bad `rows` and no good one: `last` is the last one's.
inline absl::Status AllBad(int64_t rows, const absl::Status& last) {
  return Annotate(last,
                  absl::StrCat("input.on_bad_record is SKIP, but ", rows,
                               " rows one after the other are bad; the last"));
}

// The rows of a set that were found to be bad when it was opened, and why.
class BadRows {
 public:
  void Add(int64_t row, const absl::Status& error) {
    if (errors_.size() == kMostErrors) last_ = absl::DataLossError(kMore);
    errors_.emplace(row, errors_.size() < kMostErrors ? error : last_);
  }

  int64_t size() const { return static_cast<int64_t>(errors_.size()); }

  // The error of a row; OK if it is good.
  absl::Status Check(int64_t row) const {
    if (errors_.empty()) return absl::OkStatus();
    const auto found = errors_.find(row);
    return found == errors_.end() ? absl::OkStatus() : found->second;
  }

 private:
  // More than anybody reads. The others share one.
  static constexpr size_t kMostErrors = 1000;
  static constexpr char kMore[] = "a bad row, as more than 1000 before it";

  absl::flat_hash_map<int64_t, absl::Status> errors_;
  absl::Status last_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_BAD_ROWS_H_
