#include "common/base/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

// Levenshtein distance: insertions, deletions and substitutions cost 1.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substitution = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substitution});
    }
  }
  return row.back();
}

}  // namespace

std::string NearestName(absl::string_view name,
                        absl::Span<const std::string> known) {
  // A third of the letters wrong still looks like a slip, more does not.
  size_t best = std::max<size_t>(2, name.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : known) {
    // The distance is no less; a file's names may be very long.
    if (candidate.size() >= name.size() + best) continue;
    const size_t distance = EditDistance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string UnknownNameMessage(absl::string_view kind, absl::string_view name,
                               absl::Span<const std::string> known) {
  const std::string nearest = NearestName(name, known);
  return absl::StrCat(
      "unknown ", kind, " '", name, "'; ",
      nearest.empty() ? "" : absl::StrCat("did you mean '", nearest, "'? "),
      "known: ", absl::StrJoin(known, ", "));
}

}  // namespace muster
