#include "common/rpc/training_text.h"

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// The line between the two, of each kind. No line of a text proto is like it.
std::string Border(absl::string_view kind) {
  return absl::StrCat("---- of ", kind, " alone above, of all workers below\n");
}

}  // namespace

std::string JoinTrainingText(const TrainingText& text) {
  return absl::StrCat(text.own, Border(text.kind), text.shared);
}

TrainingText SplitTrainingText(absl::string_view joined) {
  for (const absl::string_view kind : {kLayersKind, kProgramKind}) {
    const std::string border = Border(kind);
    const size_t begin = joined.find(border);
    if (begin == joined.npos) continue;
    return {std::string(kind), std::string(joined.substr(0, begin)),
            std::string(joined.substr(begin + border.size()))};
  }
  return {"", "", std::string(joined)};
}

}  // namespace muster
