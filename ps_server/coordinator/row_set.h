#ifndef PS_SERVER_COORDINATOR_ROW_SET_H_
#define PS_SERVER_COORDINATOR_ROW_SET_H_

#include <cstddef>
#include <cstdint>
#include <map>

namespace muster {

// A set of places of rows, as ranges that are apart from each other. A value.
class RowSet {
 public:
  // First place to number of rows.
  using Ranges = std::map<int64_t, int64_t>;

  // REQUIRES: it has none of these.
  void Add(int64_t first, int64_t rows);
  // REQUIRES: Contains(first, rows).
  void Remove(int64_t first, int64_t rows);
  void Clear();

  // Has it all of these?
  bool Contains(int64_t first, int64_t rows) const;
  int64_t num_rows() const { return num_rows_; }
  int64_t NumRowsBelow(int64_t place) const;
  // Ascending.
  const Ranges& ranges() const { return ranges_; }

 private:
  Ranges ranges_;
  int64_t num_rows_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_ROW_SET_H_
