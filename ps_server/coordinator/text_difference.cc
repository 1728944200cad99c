#include "ps_server/coordinator/text_difference.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/escape.h"

namespace muster {
namespace {

constexpr size_t kMaxLineChars = 200;

using Lines = std::vector<absl::string_view>;

size_t IndentOf(absl::string_view line) {
  return line.size() - absl::StripLeadingAsciiWhitespace(line).size();
}

std::string Show(const Lines& lines, size_t i) {
  if (i >= lines.size()) return "missing";
  return absl::StrCat(
      "'",
      EscapeForLog(absl::StripLeadingAsciiWhitespace(lines[i]), kMaxLineChars),
      "'");
}

// The name that the message around line i gives itself; "" if none.
std::string NameBeside(const Lines& lines, size_t i) {
  const size_t indent = IndentOf(lines[i]);
  for (size_t j = i; j-- > 0 && IndentOf(lines[j]) >= indent;) {
    absl::string_view line = lines[j].substr(IndentOf(lines[j]));
    if (IndentOf(lines[j]) > indent ||
        !absl::ConsumePrefix(&line, "name: \"")) {
      continue;
    }
    return EscapeForLog(absl::StripSuffix(line, "\""), kMaxLineChars);
  }
  return "";
}

// "optimizer.attr 'learning_rate': "; "" at the top.
std::string FieldAround(const Lines& lines, size_t i) {
  if (i >= lines.size()) return "";
  std::string path;
  size_t indent = IndentOf(lines[i]);
  for (size_t j = i; j-- > 0 && indent > 0;) {
    absl::string_view line = lines[j].substr(IndentOf(lines[j]));
    if (IndentOf(lines[j]) >= indent || !absl::ConsumeSuffix(&line, " {")) {
      continue;
    }
    indent = IndentOf(lines[j]);
    path = absl::StrCat(EscapeForLog(line, kMaxLineChars),
                        path.empty() ? "" : ".", path);
  }
  if (path.empty()) return "";
  const std::string name = NameBeside(lines, i);
  return absl::StrCat(path, name.empty() ? "" : " '", name,
                      name.empty() ? "" : "'", ": ");
}

}  // namespace

std::string FirstDifference(absl::string_view known, absl::string_view given) {
  const Lines a = absl::StrSplit(known, '\n');
  const Lines b = absl::StrSplit(given, '\n');
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size() && i < b.size() && a[i] == b[i]) continue;
    return absl::StrCat(FieldAround(b, i), "line ", i + 1, " is ", Show(b, i),
                        ", there it is ", Show(a, i));
  }
  return "the fingerprints differ, the texts do not";
}

}  // namespace muster
