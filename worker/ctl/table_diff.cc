#include "worker/ctl/table_diff.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/row_block.h"
#include "common/tensor/row_hash.h"

namespace muster {
namespace {

constexpr int64_t kBlockBytes = 1 << 20;

// Goes over the rows of a table in their order.
class RowWalk {
 public:
  RowWalk(const CheckpointReader& reader, int table)
      : reader_(reader),
        table_(table),
        saved_(reader.manifest().tables(table)),
        hash_(saved_.definition().name()),
        block_(saved_.definition().dim(), saved_.slots_size()) {}

  // Goes to the next row, the first one at first.
  absl::Status Next() {
    if (++row_ < first_ + block_.rows() || is_at_end()) return absl::OkStatus();
    first_ = row_;
    block_.Resize(
        std::min(std::max<int64_t>(kBlockBytes / block_.row_bytes(), 1),
                 saved_.rows() - row_));
    return reader_.ReadRows(table_, first_, &block_);
  }
  bool is_at_end() const { return row_ >= saved_.rows(); }
  // The place in the order of rows; the last one at the end.
  std::tuple<bool, int, int64_t> place() const {
    if (is_at_end()) return {true, 0, 0};
    const int64_t id = block_.ids()[row_ - first_];
    return {false, hash_.LogicalShardOf(id), id};
  }
  // The row's bytes in one stream.
  absl::string_view bytes(size_t stream) const {
    const absl::string_view all = block_.stream_bytes(stream);
    const size_t width = all.size() / static_cast<size_t>(block_.rows());
    return all.substr(static_cast<size_t>(row_ - first_) * width, width);
  }
  size_t num_streams() const { return block_.num_streams(); }

 private:
  const CheckpointReader& reader_;
  const int table_;
  const SavedTable& saved_;
  const RowHash hash_;
  RowBlock block_;
  // The block's first row, and the one that this is at.
  int64_t first_ = 0;
  int64_t row_ = -1;
};

struct RowDistance {
  int64_t only_in_a = 0;
  int64_t only_in_b = 0;
  int64_t differ = 0;
  // Of values and slots; infinite if one of two is not a number.
  double largest = 0;
};

double LargestDifference(absl::string_view a, absl::string_view b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); i += sizeof(float)) {
    float left;
    float right;
    std::memcpy(&left, a.data() + i, sizeof(float));
    std::memcpy(&right, b.data() + i, sizeof(float));
    if (std::memcmp(&left, &right, sizeof(float)) == 0) continue;
    const double apart =
        std::abs(static_cast<double>(left) - static_cast<double>(right));
    largest = std::max(largest, std::isnan(apart) ? HUGE_VAL : apart);
  }
  return largest;
}

void CompareRow(const RowWalk& a, const RowWalk& b, RowDistance* distance) {
  bool differs = false;
  for (size_t i = RowBlock::kUpdates; i < a.num_streams(); ++i) {
    if (a.bytes(i) == b.bytes(i)) continue;
    differs = true;
    if (i < RowBlock::kValues) continue;
    distance->largest =
        std::max(distance->largest, LargestDifference(a.bytes(i), b.bytes(i)));
  }
  if (differs) ++distance->differ;
}

absl::StatusOr<RowDistance> Measure(RowWalk a, RowWalk b) {
  RowDistance distance;
  RETURN_IF_ERROR(a.Next());
  RETURN_IF_ERROR(b.Next());
  while (!a.is_at_end() || !b.is_at_end()) {
    const bool takes_a = a.place() <= b.place();
    const bool takes_b = b.place() <= a.place();
    if (takes_a && takes_b) {
      CompareRow(a, b, &distance);
    } else {
      ++(takes_a ? distance.only_in_a : distance.only_in_b);
    }
    if (takes_a) RETURN_IF_ERROR(a.Next());
    if (takes_b) RETURN_IF_ERROR(b.Next());
  }
  return distance;
}

std::string Describe(const SavedTable& table) {
  return absl::StrCat("rows of ", table.definition().dim(), " with slots [",
                      absl::StrJoin(table.slots(), ", "), "]");
}

}  // namespace

absl::StatusOr<std::string> CompareTables(const CheckpointReader& a, int in_a,
                                          const CheckpointReader& b, int in_b) {
  const SavedTable& of_a = a.manifest().tables(in_a);
  const SavedTable& of_b = b.manifest().tables(in_b);
  if (Describe(of_a) != Describe(of_b)) {
    return absl::StrCat(Describe(of_a), " and ", Describe(of_b));
  }
  ASSIGN_OR_RETURN(const RowDistance distance,
                   Measure(RowWalk(a, in_a), RowWalk(b, in_b)));
  if (distance.only_in_a + distance.only_in_b + distance.differ == 0) return "";
  return absl::StrFormat(
      "%d rows only in %s, %d only in %s, %d of %d in both differ; largest "
      "difference %g",
      distance.only_in_a, a.path(), distance.only_in_b, b.path(),
      distance.differ, of_a.rows() - distance.only_in_a, distance.largest);
}

}  // namespace muster
