#include "worker/input/row_position.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/escape.h"
#include "common/base/max_count.h"

namespace muster {
namespace {

constexpr absl::string_view kRows = "rows";
constexpr absl::string_view kStream = "stream";
// As much of a kind as a message shows.
constexpr size_t kMaxKindChars = 40;

absl::string_view KindOf(RowOrder order) {
  return order == RowOrder::kStream ? kStream : kRows;
}

// The advice about a position of the other order, or of none that is known.
absl::string_view AdviceFor(const DataPosition& position) {
  if (position.kind() == kRows) {
    return "the training began without input.stream: leave it out, or begin "
           "anew in another train_dir";
  }
  if (position.kind() == kStream) {
    return "the training began with input.stream: set it, or begin anew in "
           "another train_dir";
  }
  return "go on with the version that has made it";
}

bool IsCount(int64_t number) { return number >= 0 && number <= kMaxCount; }

bool IsBeginning(const DataPosition& position) {
  return position.kind().empty() && position.epoch() == 0 &&
         position.rows() == 0;
}

}  // namespace

absl::StatusOr<RowPosition> ReadRowPosition(const DataPosition& position,
                                            RowOrder order) {
  if (IsBeginning(position)) return RowPosition();
  if (position.kind() != KindOf(order)) {
    return absl::InvalidArgumentError(
        absl::StrCat("data position: its kind is '",
                     EscapeForLog(position.kind(), kMaxKindChars),
                     "', wanted '", KindOf(order), "'; ", AdviceFor(position)));
  }
  if (!IsCount(position.epoch()) || !IsCount(position.rows())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data position: wanted counts of 0 to ", kMaxCount, ", found epoch ",
        position.epoch(), ", row ", position.rows()));
  }
  return RowPosition{position.epoch(), position.rows()};
}

DataPosition MakeDataPosition(const RowPosition& position, int64_t step_rows,
                              RowOrder order) {
  DataPosition made;
  made.set_kind(std::string(KindOf(order)));
  made.set_epoch(position.epoch);
  made.set_rows(position.rows);
  made.set_step_rows(step_rows);
  return made;
}

}  // namespace muster
