#include "common/config/name_pattern.h"

#include <algorithm>

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

// POSIX gives the longest of the leftmost matches: if the whole name matches,
// that is the one.
bool NamePattern::MatchesWhole(const std::string& name) const {
  regmatch_t match;
  return regexec(&regex_, name.c_str(), 1, &match, 0) == 0 &&
         match.rm_so == 0 && match.rm_eo == static_cast<int>(name.size());
}

absl::Status NamePattern::CheckMatches(
    absl::string_view field, absl::Span<const std::string> names) const {
  if (std::any_of(names.begin(), names.end(), [this](const std::string& name) {
        return MatchesWhole(name);
      })) {
    return absl::OkStatus();
  }
  const std::string nearest = NearestName(text_, names);
  const auto some = names.subspan(0, kMaxListedNames);
  return absl::InvalidArgumentError(absl::StrCat(
      field, " '", EscapeForLog(text_), "' matches no whole name; ",
      nearest.empty() ? "" : absl::StrCat("did you mean '", nearest, "'? "),
      "there are: ", absl::StrJoin(some, ", "),
      names.size() > some.size()
          ? absl::StrCat(", and ", names.size() - some.size(), " more")
          : ""));
}

}  // namespace muster
