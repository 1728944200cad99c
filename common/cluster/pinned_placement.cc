// pinned: a tensor whose whole name matches a pattern goes to that pattern's
// ps task, the first match decides; the others are placed by the fallback
// strategy, as if they were alone.
//
// Patterns are POSIX extended regular expressions in glibc's matcher: unlike
// std::regex it throws nothing and does not backtrack without limit. Repeat
// counts {m,n} are refused, since nested they compile to gigabytes, and so are
// back references, which are exponential.
#include <regex.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement_strategy.h"

namespace muster {
namespace {

constexpr size_t kMaxPatternLength = 256;

// One compiled pattern.
class Pattern {
 public:
  static absl::StatusOr<std::unique_ptr<Pattern>> Create(
      const std::string& text) {
    RETURN_IF_ERROR(Check(text));
    auto pattern = std::unique_ptr<Pattern>(new Pattern());
    const int error = regcomp(&pattern->regex_, text.c_str(), REG_EXTENDED);
    if (error != 0) {
      char reason[128];
      regerror(error, &pattern->regex_, reason, sizeof(reason));
      return BadPattern(text, reason);
    }
    pattern->compiled_ = true;
    return pattern;
  }

  ~Pattern() {
    if (compiled_) regfree(&regex_);
  }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  // POSIX gives the longest of the leftmost matches: if the whole name
  // matches, that is the one.
  bool MatchesWhole(const std::string& name) const {
    regmatch_t match;
    return regexec(&regex_, name.c_str(), 1, &match, 0) == 0 &&
           match.rm_so == 0 && match.rm_eo == static_cast<int>(name.size());
  }

 private:
  Pattern() = default;

  static absl::Status BadPattern(absl::string_view text,
                                 absl::string_view reason) {
    return absl::InvalidArgumentError(
        absl::StrCat("placement.pin.pattern '", text, "': ", reason,
                     "; wanted a POSIX extended regular expression"));
  }

  static absl::Status Check(const std::string& text) {
    if (text.empty()) return BadPattern(text, "is empty");
    if (text.size() > kMaxPatternLength) {
      return BadPattern(text.substr(0, 32),
                        absl::StrCat("has ", text.size(),
                                     " characters, at "
                                     "most ",
                                     kMaxPatternLength, " are allowed"));
    }
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\0') return BadPattern(text.substr(0, i), "holds a NUL");
      if (text[i] == '{') {
        return BadPattern(text, "repeat counts are not supported, use * or +");
      }
      if (text[i] != '\\') continue;
      ++i;
      if (i < text.size() && text[i] >= '0' && text[i] <= '9') {
        return BadPattern(text, "back references are not supported");
      }
    }
    return absl::OkStatus();
  }

  regex_t regex_;
  bool compiled_ = false;
};

struct Pin {
  std::string text;
  std::unique_ptr<Pattern> pattern;
  int ps_task = 0;
};

class PinnedPlacement : public PlacementStrategy {
 public:
  PinnedPlacement(std::vector<Pin> pins,
                  std::unique_ptr<PlacementStrategy> fallback)
      : pins_(std::move(pins)), fallback_(std::move(fallback)) {}

  absl::StatusOr<std::vector<int>> Place(absl::Span<const TensorDef> tensors,
                                         int num_ps) const override {
    RETURN_IF_ERROR(CheckTasks(num_ps));
    std::vector<int> tasks;
    std::vector<TensorDef> unpinned;
    for (const TensorDef& tensor : tensors) {
      const std::optional<int> task = PinOf(tensor.name());
      tasks.push_back(task.value_or(-1));
      if (!task.has_value()) unpinned.push_back(tensor);
    }
    ASSIGN_OR_RETURN(const std::vector<int> rest,
                     fallback_->Place(unpinned, num_ps));
    auto next = rest.begin();
    for (int& task : tasks) {
      if (task < 0) task = *next++;
    }
    return tasks;
  }

 private:
  absl::Status CheckTasks(int num_ps) const {
    for (const Pin& pin : pins_) {
      if (pin.ps_task >= num_ps) {
        return absl::InvalidArgumentError(absl::StrCat(
            "placement.pin '", pin.text, "': ps_task ", pin.ps_task,
            " is not in the cluster, which has ", num_ps, " ps tasks"));
      }
    }
    return absl::OkStatus();
  }

  std::optional<int> PinOf(const std::string& name) const {
    for (const Pin& pin : pins_) {
      if (pin.pattern->MatchesWhole(name)) return pin.ps_task;
    }
    return std::nullopt;
  }

  const std::vector<Pin> pins_;
  const std::unique_ptr<PlacementStrategy> fallback_;
};

absl::StatusOr<std::unique_ptr<PlacementStrategy>> CreateFallback(
    const PlacementSpec& spec) {
  if (spec.fallback() == "pinned") {
    return absl::InvalidArgumentError(
        "placement.fallback must not be 'pinned' itself");
  }
  PlacementSpec fallback;
  fallback.set_strategy(spec.fallback());
  auto strategy = CreatePlacementStrategy(fallback);
  if (!strategy.ok()) {
    return Annotate(strategy.status(), "placement.fallback");
  }
  return strategy;
}

absl::StatusOr<std::unique_ptr<PlacementStrategy>> Create(
    const PlacementSpec& spec) {
  if (spec.pin_size() == 0) {
    return absl::InvalidArgumentError(
        "placement strategy 'pinned' needs at least one pin { pattern: \"...\" "
        "ps_task: 0 }");
  }
  std::vector<Pin> pins;
  for (const PinSpec& pin : spec.pin()) {
    ASSIGN_OR_RETURN(std::unique_ptr<Pattern> pattern,
                     Pattern::Create(pin.pattern()));
    if (pin.ps_task() < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "placement.pin '", pin.pattern(),
          "': ps_task must not be negative, found ", pin.ps_task()));
    }
    pins.push_back({pin.pattern(), std::move(pattern), pin.ps_task()});
  }
  ASSIGN_OR_RETURN(std::unique_ptr<PlacementStrategy> fallback,
                   CreateFallback(spec));
  return std::make_unique<PinnedPlacement>(std::move(pins),
                                           std::move(fallback));
}

[[maybe_unused]] const bool kRegistered = PlacementRegistry::Register(
    "pinned", {&Create, /*takes_pins=*/true,
               "by regular expressions on names, the rest by `fallback`"});

}  // namespace
}  // namespace muster
