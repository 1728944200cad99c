#ifndef WORKER_CHECKPOINT_NAME_MAP_H_
#define WORKER_CHECKPOINT_NAME_MAP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/config/name_pattern.h"

namespace muster {

// Rules "PATTERN=REPLACEMENT" that rename tensors. The first rule whose pattern
// (NamePattern) matches the whole name decides; a name that fits none stays as
// it is. \1 to \9 in a replacement are what the groups of the pattern matched.
// An empty replacement leaves the tensor out.
//
//   "model\.(.*)\.weight=\1/weights"   model.conv1.weight -> conv1/weights
//   "head/.*="                         head/weights is left out
class NameMap {
 public:
  // The fate of a tensor. `name` of one that is left out is what the
  // other rules make of it.
  struct Mapped {
    std::string name;
    bool left_out = false;
  };

  // Errors: InvalidArgument naming the rule.
  static absl::StatusOr<NameMap> Create(absl::Span<const std::string> rules);

  Mapped Map(const std::string& name) const;

  // Errors: InvalidArgument for a rule that matches none of `names`, with the
  // nearest.
  absl::Status CheckMatches(absl::Span<const std::string> names) const;

 private:
  struct Rule {
    std::unique_ptr<NamePattern> pattern;
    std::string replacement;
  };

  std::vector<Rule> rules_;
};

// Rules of a NameMap that leave out these tensors of a file, and with each its
// layer: "head/.*=" where all of `names` that begin so are of one layer, else
// the whole name. None for a name that is too long for a pattern.
//   unwanted: some of `names`
std::vector<std::string> RulesThatLeaveOut(
    absl::Span<const std::string> unwanted,
    absl::Span<const std::string> names);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_NAME_MAP_H_
