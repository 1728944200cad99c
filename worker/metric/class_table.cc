#include "worker/metric/class_table.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/base/escape.h"

namespace muster {

std::vector<std::string> ClassTableLines(
    absl::Span<const ClassFigures> by_class) {
  std::vector<std::string> names;
  size_t width = 4;
  for (const ClassFigures& one : by_class) {
    // A name must not end its cell.
    names.push_back(
        absl::StrReplaceAll(EscapeForLog(one.name), {{"|", "\\|"}}));
    width = std::max(width, names.back().size());
  }
  const int columns = static_cast<int>(width);
  std::vector<std::string> lines = {
      absl::StrFormat("| %-*s |   rows | precision | recall |     f1 |",
                      columns, "name"),
      absl::StrFormat("| %s | -----: | --------: | -----: | -----: |",
                      std::string(width, '-'))};
  for (size_t i = 0; i < names.size(); ++i) {
    const ClassFigures& one = by_class[i];
    lines.push_back(absl::StrFormat("| %-*s | %6d | %9.4f | %6.4f | %6.4f |",
                                    columns, names[i], one.rows, one.precision,
                                    one.recall, one.f1));
  }
  return lines;
}

}  // namespace muster
