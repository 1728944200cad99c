#ifndef WORKER_CHECKPOINT_NAME_MAP_H_
#define WORKER_CHECKPOINT_NAME_MAP_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

// Rules "PATTERN=REPLACEMENT" that rename tensors. The first rule whose pattern
// is the whole name decides; a name that fits none stays as it is. "*" in a
// pattern is any run of characters, each but the last as short as possible;
// the n-th "*" of the replacement stands for what the n-th one was. An empty
// replacement leaves the tensor out.
//
//   "model.*.weight=*/weights"   model.conv1.weight -> conv1/weights
//   "head.*="                    head.weight is left out
class NameMap {
 public:
  // Errors: InvalidArgument naming the rule.
  static absl::StatusOr<NameMap> Create(absl::Span<const std::string> rules);

  // The new name; nothing if the tensor is left out.
  std::optional<std::string> Map(absl::string_view name) const;

 private:
  struct Rule {
    // The pieces between the "*"s; one more than there are "*"s.
    std::vector<std::string> pattern;
    std::vector<std::string> replacement;
  };

  std::vector<Rule> rules_;
};

}  // namespace muster

#endif  // WORKER_CHECKPOINT_NAME_MAP_H_
