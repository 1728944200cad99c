#ifndef COMMON_CONFIG_NAME_PATTERN_H_
#define COMMON_CONFIG_NAME_PATTERN_H_

#include <regex.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

// A pattern of tensor names that a user wrote: a POSIX extended regular
// expression in glibc's matcher, which, unlike std::regex, throws nothing and
// does not backtrack without limit. Repeat counts {m,n} are refused, since
// nested they compile to gigabytes, and so are back references, which are
// exponential. Thread-safe once made.
class NamePattern {
 public:
  // `field` begins the error: "placement.pin.pattern". Errors: InvalidArgument
  // for a pattern that is empty, longer than 256 characters, or no such
  // expression.
  static absl::StatusOr<std::unique_ptr<NamePattern>> Create(
      absl::string_view field, const std::string& text);

  ~NamePattern();
  NamePattern(const NamePattern&) = delete;
  NamePattern& operator=(const NamePattern&) = delete;

  // Does it match the name from its beginning to its end?
  bool MatchesWhole(const std::string& name) const;

  // The groups in parentheses.
  int num_groups() const { return static_cast<int>(regex_.re_nsub); }

  // If it matches the whole name: the text of each group, "" for one that took
  // no part. The longest text goes to the groups from the left.
  std::optional<std::vector<std::string>> Groups(const std::string& name) const;

  // Errors: InvalidArgument, beginning with `field`, if it matches none of
  // `names`; with the nearest of them or of their layers, and the first.
  absl::Status CheckMatches(absl::string_view field,
                            absl::Span<const std::string> names) const;

 private:
  explicit NamePattern(std::string text) : text_(std::move(text)) {}

  // The whole name, then groups; empty if it does not match.
  std::vector<regmatch_t> Match(const std::string& name,
                                size_t num_matches) const;

  const std::string text_;
  regex_t regex_;
  bool compiled_ = false;
};

}  // namespace muster

#endif  // COMMON_CONFIG_NAME_PATTERN_H_
