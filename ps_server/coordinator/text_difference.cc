#include "ps_server/coordinator/text_difference.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/escape.h"
#include "common/base/fingerprint.h"

namespace muster {
namespace {

constexpr size_t kMaxLineChars = 200;
constexpr size_t kMaxNameChars = 40;

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

// The text of a section, an item a line.
struct Items {
  explicit Items(const DataSection& section)
      : is_whole(Fingerprint64(section.text()) == section.digest()) {
    if (section.text().empty()) return;
    lines = absl::StrSplit(absl::StripSuffix(section.text(), "\n"), '\n');
  }

  bool IsKnown(size_t i) const { return is_whole || i < lines.size(); }

  bool is_whole;
  Lines lines;
};

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

std::string SectionDifference(const DataSection& known,
                              const DataSection& given,
                              absl::string_view owner) {
  const Items there(known);
  const Items here(given);
  const size_t shorter = std::min(there.lines.size(), here.lines.size());
  size_t i = 0;
  while (i < shorter && there.lines[i] == here.lines[i]) ++i;
  const std::string section =
      absl::StrCat(EscapeForLog(given.name(), kMaxNameChars), ": ");
  const bool is_end = i >= there.lines.size() && i >= here.lines.size();
  if (is_end || !there.IsKnown(i) || !here.IsKnown(i)) {
    return absl::StrCat(section, "they differ after the first ", i,
                        " lines, which alone are sent");
  }
  const bool has_one_line = there.lines.size() == 1 && here.lines.size() == 1 &&
                            there.is_whole && here.is_whole;
  return absl::StrCat(
      section, has_one_line ? "" : absl::StrCat("line ", i + 1, " is "),
      Show(here.lines, i), " here, ", Show(there.lines, i), " at ", owner);
}

}  // namespace muster
