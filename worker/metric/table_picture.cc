#include "worker/metric/table_picture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// As large as TensorBoard shows it beside others. Larger tables have a pixel a
// cell.
constexpr int64_t kSide = 320;
constexpr uint8_t kWhite = 255;

absl::Status CheckSquare(const MetricResult::Table& table) {
  for (const std::vector<int64_t>& row : table.counts) {
    if (row.size() == table.counts.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "drawing the table '", table.name, "': wanted as many columns as its ",
        table.counts.size(), " rows, found ", row.size()));
  }
  if (!table.counts.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("drawing the table '", table.name, "': it has no rows"));
}

uint8_t GreyOf(int64_t count, int64_t row_sum) {
  if (row_sum == 0) return kWhite;
  const double part = static_cast<double>(count) / static_cast<double>(row_sum);
  return static_cast<uint8_t>(std::lround(kWhite * (1 - part)));
}

}  // namespace

absl::StatusOr<TablePicture> DrawTable(const MetricResult::Table& table) {
  const absl::Status square = CheckSquare(table);
  if (!square.ok()) return square;
  const auto cells = static_cast<int64_t>(table.counts.size());
  const int64_t cell = std::max<int64_t>(1, kSide / cells);
  TablePicture picture;
  picture.side = cells * cell;
  for (const std::vector<int64_t>& row : table.counts) {
    const int64_t sum = std::accumulate(row.begin(), row.end(), int64_t{0});
    std::vector<uint8_t> line;
    for (const int64_t count : row) {
      line.insert(line.end(), cell, GreyOf(count, sum));
    }
    for (int64_t i = 0; i < cell; ++i) {
      picture.pixels.insert(picture.pixels.end(), line.begin(), line.end());
    }
  }
  return picture;
}

}  // namespace muster
