// The part of WorkerTask that chooses where parameters are updated.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/optimizer/update_rule.h"
#include "worker/backend/device_rule.h"
#include "worker/task/worker_task.h"
#include "worker/training/update_place.h"

namespace muster {

absl::Status WorkerTask::PlaceUpdates() {
  const ComputeSpec& compute = options_.training.compute();
  const bool is_asked_for = compute.update_on_device();
  if (compute.has_update_on_device() && !is_asked_for) return absl::OkStatus();
  const TowerParts& tower = opened_.towers.front();
  UpdateSite site;
  site.is_standalone = options_.cluster.empty();
  site.shape = shape_;
  site.has_device = tower.backend->streams() != nullptr;
  site.tensors = tower.model->parameters();
  std::string why = WhyShardUpdates(options_.training, site);
  if (why.empty()) {
    absl::StatusOr<std::unique_ptr<DeviceRule>> rule =
        tower.backend->CreateRule(update_rule_.get());
    if (rule.ok()) {
      ASSIGN_OR_RETURN(update_,
                       tower.model->UpdateOnDevice(
                           *std::move(rule),
                           static_cast<int>(update_rule_->slots().size())));
      options_.say(/*is_error=*/false,
                   absl::StrCat("parameters stay on ", tower.device,
                                ", and are updated there"));
      return absl::OkStatus();
    }
    if (!absl::IsUnimplemented(rule.status())) return rule.status();
    why = std::string(rule.status().message());
  }
  if (is_asked_for) {
    options_.say(/*is_error=*/false,
                 absl::StrCat("compute.update_on_device is not possible, the "
                              "host updates the parameters: ",
                              why));
  }
  return absl::OkStatus();
}

}  // namespace muster
