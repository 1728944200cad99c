#include "worker/input/row_position.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/max_count.h"

namespace muster {
namespace {

constexpr char kRows[] = "rows";
// As much of a kind as a message shows.
constexpr size_t kMaxKindChars = 40;

bool IsCount(int64_t number) { return number >= 0 && number <= kMaxCount; }

bool IsBeginning(const DataPosition& position) {
  return position.kind().empty() && position.epoch() == 0 &&
         position.rows() == 0;
}

}  // namespace

absl::StatusOr<RowPosition> ReadRowPosition(const DataPosition& position) {
  if (IsBeginning(position)) return RowPosition();
  if (position.kind() != kRows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data position: its kind is '",
        EscapeForLog(position.kind(), kMaxKindChars), "', this version knows '",
        kRows, "'; go on with the version that has made it"));
  }
  if (!IsCount(position.epoch()) || !IsCount(position.rows())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data position: wanted counts of 0 to ", kMaxCount, ", found epoch ",
        position.epoch(), ", row ", position.rows()));
  }
  return RowPosition{position.epoch(), position.rows()};
}

DataPosition MakeDataPosition(const RowPosition& position, int64_t step_rows) {
  DataPosition made;
  made.set_kind(kRows);
  made.set_epoch(position.epoch);
  made.set_rows(position.rows);
  made.set_step_rows(step_rows);
  return made;
}

}  // namespace muster
