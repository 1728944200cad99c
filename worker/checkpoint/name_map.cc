#include "worker/checkpoint/name_map.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr char kFlag[] = "--init_from_map";
// Between a layer's name and that of its tensor, here and elsewhere.
constexpr char kSeparators[] = "/.";

absl::Status BadRule(const std::string& rule, absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat(kFlag, " '", EscapeForLog(rule), "': ", reason));
}

// REQUIRES: `replacement` has passed CheckReplacement.
std::string Fill(const std::string& replacement,
                 const std::vector<std::string>& groups) {
  std::string text;
  for (size_t i = 0; i < replacement.size(); ++i) {
    if (replacement[i] != '\\') {
      text.push_back(replacement[i]);
      continue;
    }
    const char escaped = replacement[++i];
    if (escaped == '\\') {
      text.push_back(escaped);
    } else {
      absl::StrAppend(&text, groups[escaped - '1']);
    }
  }
  return text;
}

absl::Status CheckReplacement(const std::string& rule,
                              const std::string& replacement, int num_groups) {
  if (absl::StrContains(replacement, '*')) {
    return BadRule(rule,
                   "'*' in a replacement; wanted a group of the pattern, a "
                   "regular expression: 'model\\.(.*)\\.weight=\\1/weights'");
  }
  for (size_t i = 0; i < replacement.size(); ++i) {
    if (replacement[i] != '\\') continue;
    const char escaped = ++i < replacement.size() ? replacement[i] : '\0';
    if (escaped == '\\') continue;
    if (escaped >= '1' && escaped <= '9' && escaped - '0' <= num_groups) {
      continue;
    }
    return BadRule(rule,
                   absl::StrCat("after '\\' in a replacement, wanted a "
                                "group of the pattern, which has ",
                                num_groups, ", found '",
                                EscapeForLog(replacement.substr(i, 1)), "'"));
  }
  return absl::OkStatus();
}

// A pattern of just this name that also a shell's quotes and the rule's '=' can
// hold: '.' stands for what they cannot.
std::string AsPattern(absl::string_view name) {
  std::string pattern;
  for (const char c : name) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c)) || c == '\'' ||
        c == '=') {
      pattern.push_back('.');
      continue;
    }
    if (absl::StrContains("\\.[](){}*+?|^$", c)) pattern.push_back('\\');
    pattern.push_back(c);
  }
  return pattern;
}

// The layer's name with its separator, if no name that begins with it goes
// deeper; else "".
absl::string_view LayerOf(absl::string_view name,
                          absl::Span<const std::string> names) {
  const size_t separator = name.find_last_of(kSeparators);
  if (separator == absl::string_view::npos) return "";
  const absl::string_view layer = name.substr(0, separator + 1);
  const bool is_deeper =
      std::any_of(names.begin(), names.end(), [layer](absl::string_view other) {
        return absl::StartsWith(other, layer) &&
               other.find_first_of(kSeparators, layer.size()) !=
                   absl::string_view::npos;
      });
  return is_deeper ? "" : layer;
}

}  // namespace

absl::StatusOr<NameMap> NameMap::Create(absl::Span<const std::string> rules) {
  NameMap map;
  for (const std::string& text : rules) {
    std::vector<std::string> sides = absl::StrSplit(text, '=');
    if (sides.size() != 2 || sides[0].empty()) {
      return BadRule(text,
                     "is no rule for names; wanted PATTERN=REPLACEMENT, for "
                     "example 'model\\.(.*)\\.weight=\\1/weights', or "
                     "'head/.*=' to leave tensors out");
    }
    // First: a pattern like '*.weight' is best told with its replacement.
    if (absl::StrContains(sides[1], '*')) {
      RETURN_IF_ERROR(CheckReplacement(text, sides[1], /*num_groups=*/0));
    }
    ASSIGN_OR_RETURN(std::unique_ptr<NamePattern> pattern,
                     NamePattern::Create(kFlag, sides[0]));
    RETURN_IF_ERROR(CheckReplacement(text, sides[1], pattern->num_groups()));
    map.rules_.push_back({std::move(pattern), std::move(sides[1])});
  }
  return map;
}

NameMap::Mapped NameMap::Map(const std::string& name) const {
  Mapped mapped{name};
  for (const Rule& rule : rules_) {
    const auto groups = rule.pattern->Groups(name);
    if (!groups.has_value()) continue;
    mapped.name = Fill(rule.replacement, *groups);
    if (!mapped.name.empty()) return mapped;
    mapped = {name, /*left_out=*/true};
  }
  return mapped;
}

absl::Status NameMap::CheckMatches(absl::Span<const std::string> names) const {
  for (const Rule& rule : rules_) {
    RETURN_IF_ERROR(rule.pattern->CheckMatches(kFlag, names));
  }
  return absl::OkStatus();
}

std::vector<std::string> RulesThatLeaveOut(
    absl::Span<const std::string> unwanted,
    absl::Span<const std::string> names) {
  std::vector<std::string> rules;
  for (const std::string& name : unwanted) {
    const absl::string_view layer = LayerOf(name, names);
    const std::string pattern =
        layer.empty() ? AsPattern(name) : absl::StrCat(AsPattern(layer), ".*");
    const bool is_new =
        std::find(rules.begin(), rules.end(), pattern + "=") == rules.end();
    if (is_new && NamePattern::Create(kFlag, pattern).ok()) {
      rules.push_back(pattern + "=");
    }
  }
  return rules;
}

}  // namespace muster
