#ifndef WORKER_INPUT_FILE_FILE_ROWS_H_
#define WORKER_INPUT_FILE_FILE_ROWS_H_

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster {

// The rows of many files, counted through: which file has row i.
class FileRows {
 public:
  struct Place {
    size_t file;
    // In that file.
    int64_t row;
  };

  // The next file has `rows`, 0 or more.
  void Add(int64_t rows) {
    assert(rows >= 0);
    ends_.push_back(num_rows() + rows);
  }

  size_t num_files() const { return ends_.size(); }
  int64_t num_rows() const { return ends_.empty() ? 0 : ends_.back(); }

  // REQUIRES: 0 <= row < num_rows().
  Place Find(int64_t row) const {
    assert(row >= 0 && row < num_rows());
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), row);
    const int64_t begin = end == ends_.begin() ? 0 : *(end - 1);
    return {static_cast<size_t>(end - ends_.begin()), row - begin};
  }

 private:
  // The number of rows in each file and those before it.
  std::vector<int64_t> ends_;
};

}  // namespace muster

#endif  // WORKER_INPUT_FILE_FILE_ROWS_H_
