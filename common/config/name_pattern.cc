#include "common/config/name_pattern.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kMaxPatternLength = 256;
// In an error.
constexpr size_t kMaxListedNames = 20;

absl::Status BadPattern(absl::string_view field, absl::string_view text,
                        absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " '", text, "': ", reason,
                   "; wanted a POSIX extended regular expression"));
}

absl::Status Check(absl::string_view field, const std::string& text) {
  if (text.empty()) return BadPattern(field, text, "is empty");
  if (text.size() > kMaxPatternLength) {
    return BadPattern(field, text.substr(0, 32),
                      absl::StrCat("has ", text.size(), " characters, at most ",
                                   kMaxPatternLength, " are allowed"));
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\0') {
      return BadPattern(field, text.substr(0, i), "holds a NUL");
    }
    if (text[i] == '{') {
      return BadPattern(field, text,
                        "repeat counts are not supported, use * or +");
    }
    if (text[i] != '\\') continue;
    ++i;
    if (i < text.size() && text[i] >= '0' && text[i] <= '9') {
      return BadPattern(field, text, "back references are not supported");
    }
  }
  return absl::OkStatus();
}

// The name, or for one like "conv1/.*" the layer's pattern, that a pattern was
// likely meant to be: the nearest to its letters; "" if none is near.
std::string NearestTo(const std::string& pattern,
                      absl::Span<const std::string> names) {
  std::string letters;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      if (++i < pattern.size()) letters.push_back(pattern[i]);
    } else if (!absl::StrContains(".*+?|()[]^$", pattern[i])) {
      letters.push_back(pattern[i]);
    }
  }
  std::vector<std::string> known(names.begin(), names.end());
  for (const std::string& name : names) {
    known.push_back(name.substr(0, name.find_last_of("/.") + 1));
  }
  std::string nearest = NearestName(letters, known);
  if (absl::EndsWith(nearest, "/") || absl::EndsWith(nearest, ".")) {
    nearest += ".*";
  }
  return nearest;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NamePattern>> NamePattern::Create(
    absl::string_view field, const std::string& text) {
  RETURN_IF_ERROR(Check(field, text));
  auto pattern = std::unique_ptr<NamePattern>(new NamePattern(text));
  const int error = regcomp(&pattern->regex_, text.c_str(), REG_EXTENDED);
  if (error != 0) {
    char reason[128];
    regerror(error, &pattern->regex_, reason, sizeof(reason));
    return BadPattern(field, text, reason);
  }
  pattern->compiled_ = true;
  return pattern;
}

NamePattern::~NamePattern() {
  if (compiled_) regfree(&regex_);
}

bool NamePattern::MatchesWhole(const std::string& name) const {
  return !Match(name, /*num_matches=*/1).empty();
}

std::optional<std::vector<std::string>> NamePattern::Groups(
    const std::string& name) const {
  const std::vector<regmatch_t> matches = Match(name, regex_.re_nsub + 1);
  if (matches.empty()) return std::nullopt;
  std::vector<std::string> groups;
  for (size_t i = 1; i < matches.size(); ++i) {
    const auto [begin, end] = matches[i];
    groups.push_back(begin < 0 ? "" : name.substr(begin, end - begin));
  }
  return groups;
}

// POSIX gives the longest of the leftmost matches: if the whole name matches,
// that is the one.
std::vector<regmatch_t> NamePattern::Match(const std::string& name,
                                           size_t num_matches) const {
  std::vector<regmatch_t> matches(num_matches);
  if (regexec(&regex_, name.c_str(), num_matches, matches.data(), 0) != 0 ||
      matches[0].rm_so != 0 ||
      matches[0].rm_eo != static_cast<int>(name.size())) {
    return {};
  }
  return matches;
}

absl::Status NamePattern::CheckMatches(
    absl::string_view field, absl::Span<const std::string> names) const {
  if (std::any_of(names.begin(), names.end(), [this](const std::string& name) {
        return MatchesWhole(name);
      })) {
    return absl::OkStatus();
  }
  const std::string nearest = NearestTo(text_, names);
  const auto some = names.subspan(0, kMaxListedNames);
  return absl::InvalidArgumentError(absl::StrCat(
      field, " '", EscapeForLog(text_), "' matches no whole name; ",
      nearest.empty()
          ? ""
          : absl::StrCat("did you mean '", EscapeForLog(nearest), "'? "),
      "there are: ",
      absl::StrJoin(some, ", ",
                    [](std::string* out, const std::string& name) {
                      absl::StrAppend(out, EscapeForLog(name));
                    }),
      names.size() > some.size()
          ? absl::StrCat(", and ", names.size() - some.size(), " more")
          : ""));
}

}  // namespace muster
