#include "worker/input/image/other_entries.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/escape.h"

namespace muster {
namespace {

constexpr size_t kNamed = 3;
// Names may end in anything.
constexpr size_t kMaxKinds = 8;
constexpr char kFurtherKinds[] = "of further kinds";

}  // namespace

void OtherEntries::Add(const std::string& path, absl::string_view kind) {
  ++count_;
  if (first_.size() < kNamed) first_.push_back(EscapeForLog(path));
  std::string name = EscapeForLog(kind);
  if (kinds_.size() >= kMaxKinds && kinds_.count(name) == 0) {
    name = kFurtherKinds;
  }
  ++kinds_[std::move(name)];
}

std::string OtherEntries::ToString() const {
  const auto of_kind = [](std::string* out, const auto& kind) {
    absl::StrAppend(out, kind.second, " ", kind.first);
  };
  const int64_t more = count_ - static_cast<int64_t>(first_.size());
  return absl::StrCat(count_,
                      count_ == 1 ? " entry that is not read ("
                                  : " entries that are not read (",
                      absl::StrJoin(kinds_, ", ", of_kind), "): '",
                      absl::StrJoin(first_, "', '"), "'",
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

}  // namespace muster
