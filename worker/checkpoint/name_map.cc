#include "worker/checkpoint/name_map.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

// The text of each "*" if the pieces with "*" between them make up `name`.
std::optional<std::vector<absl::string_view>> MatchPieces(
    const std::vector<std::string>& pieces, absl::string_view name) {
  if (pieces.size() == 1) {
    if (name != pieces.front()) return std::nullopt;
    return std::vector<absl::string_view>();
  }
  if (!absl::ConsumePrefix(&name, pieces.front()) ||
      !absl::ConsumeSuffix(&name, pieces.back())) {
    return std::nullopt;
  }
  // The shortest run before each piece leaves the most to the pieces after it.
  std::vector<absl::string_view> runs;
  for (size_t i = 1; i + 1 < pieces.size(); ++i) {
    const size_t end = name.find(pieces[i]);
    if (end == absl::string_view::npos) return std::nullopt;
    runs.push_back(name.substr(0, end));
    name.remove_prefix(end + pieces[i].size());
  }
  runs.push_back(name);
  return runs;
}

std::string Fill(const std::vector<std::string>& pieces,
                 const std::vector<absl::string_view>& runs) {
  std::string text = pieces.front();
  for (size_t i = 1; i < pieces.size(); ++i) {
    absl::StrAppend(&text, runs[i - 1], pieces[i]);
  }
  return text;
}

}  // namespace

absl::StatusOr<NameMap> NameMap::Create(absl::Span<const std::string> rules) {
  NameMap map;
  for (const std::string& text : rules) {
    const std::vector<std::string> sides = absl::StrSplit(text, '=');
    if (sides.size() != 2 || sides[0].empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", absl::CHexEscape(text),
          "' is no rule for names; wanted PATTERN=REPLACEMENT, for example "
          "'model.*.weight=*/weights', or 'head.*=' to leave tensors out"));
    }
    Rule rule;
    rule.pattern = absl::StrSplit(sides[0], '*');
    rule.replacement = absl::StrSplit(sides[1], '*');
    if (rule.replacement.size() > rule.pattern.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", absl::CHexEscape(text), "': the replacement has ",
                       rule.replacement.size() - 1, " '*', the pattern only ",
                       rule.pattern.size() - 1));
    }
    map.rules_.push_back(std::move(rule));
  }
  return map;
}

std::optional<std::string> NameMap::Map(absl::string_view name) const {
  for (const Rule& rule : rules_) {
    const auto runs = MatchPieces(rule.pattern, name);
    if (!runs.has_value()) continue;
    std::string mapped = Fill(rule.replacement, *runs);
    if (mapped.empty()) return std::nullopt;
    return mapped;
  }
  return std::string(name);
}

}  // namespace muster
