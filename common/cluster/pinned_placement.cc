// pinned: a tensor whose whole name matches a pattern goes to that pattern's
// ps task, whole, the first match decides; the others are cut and placed by the
// fallback strategy, as if they were alone.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement.h"
#include "common/cluster/placement_strategy.h"
#include "common/config/name_pattern.h"

namespace muster {
namespace {

struct Pin {
  std::string text;
  std::unique_ptr<NamePattern> pattern;
  int ps_task = 0;
};

class PinnedPlacement : public PlacementStrategy {
 public:
  PinnedPlacement(std::vector<Pin> pins,
                  std::unique_ptr<PlacementStrategy> fallback)
      : pins_(std::move(pins)), fallback_(std::move(fallback)) {}

  absl::StatusOr<Placement> Place(absl::Span<const TensorDef> tensors,
                                  const PartitionSpec& partition,
                                  int num_ps) const override {
    RETURN_IF_ERROR(CheckTasks(num_ps));
    RETURN_IF_ERROR(CheckPatterns(tensors));
    std::vector<int> tasks;
    std::vector<TensorDef> unpinned;
    for (const TensorDef& tensor : tensors) {
      const std::optional<int> task = PinOf(tensor.name());
      tasks.push_back(task.value_or(-1));
      if (!task.has_value()) unpinned.push_back(tensor);
    }
    ASSIGN_OR_RETURN(Placement rest,
                     fallback_->Place(unpinned, partition, num_ps));
    ASSIGN_OR_RETURN(Placement placement, PlaceWhole(tensors, tasks));
    auto next = rest.begin();
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i] < 0) placement[i] = std::move(*next++);
    }
    return placement;
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

  absl::Status CheckPatterns(absl::Span<const TensorDef> tensors) const {
    std::vector<std::string> names;
    for (const TensorDef& tensor : tensors) names.push_back(tensor.name());
    for (const Pin& pin : pins_) {
      RETURN_IF_ERROR(
          pin.pattern->CheckMatches("placement.pin.pattern", names));
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
  fallback.set_seed(spec.seed());
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
    ASSIGN_OR_RETURN(
        std::unique_ptr<NamePattern> pattern,
        NamePattern::Create("placement.pin.pattern", pin.pattern()));
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
    "pinned", {&Create, /*takes_pins=*/true, /*takes_seed=*/true,
               "by regular expressions on names, the rest by `fallback`"});

}  // namespace
}  // namespace muster
